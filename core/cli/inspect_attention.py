"""`inspect --what attention`: weights and statistics of heads, and one row recomputed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from core.cli.question import Question
from core.cli.records import token_record
from core.decode.measure import bits
from core.faults import Fault
from core.heads import HeadStatistics, layer_map, statistics
from core.trace import Capture
from core.weight import derive

STATISTICS: Final = ("entropy", "distance", "first", "previous", "itself", "same")
LISTED: Final = 10
"""Weights of a row that are printed for people, the largest first."""


def attention(question: Question) -> dict[str, Any]:
    """Statistics of all heads, or of one ``--layer``, and then its weights [query][key], too.

    ``--head`` picks one of its heads, ``--position`` one row; with both, the row is worked
    out again from q and k.
    """
    engine, ids = question.engine, question.fits()
    info = engine.info
    if info.layers == 0:
        raise Fault("toy_no_layers")
    layer = question.place("layer", question.layer, info.layers)
    head = question.place("head", question.head, info.heads)
    at = question.place("position", question.position, len(ids))
    heads = range(info.heads) if head is None else range(head, head + 1)
    layers = range(info.layers) if layer is None else range(layer, layer + 1)
    without = info.without_attention
    if layer in without:
        known = [n for n in range(info.layers) if n not in without]
        raise Fault("no_attention_here", layer=layer, known=", ".join(map(str, known)))
    record: dict[str, Any] = {
        "model": question.spec.model,
        "tokens": [token_record(token) for token in question.tokens],
        "kv_heads": info.kv_heads,
        "without_attention": list(without),
        "heads": [],
    }
    for one in [n for n in layers if n not in without]:
        maps = layer_map([engine.forward(ids, capture=Capture(layer=one))], one)
        if maps is None:
            raise Fault("scores_not_readable")
        found = statistics(maps, ids)
        for number in heads:
            entry = _head(one, number, found, info.heads // info.kv_heads)
            entry["window"] = engine.window(one)
            if layer is not None:
                weights = maps[number] if at is None else maps[number, at]
                entry["weights"] = weights.tolist()
            record["heads"].append(entry)
    record["position"] = at
    if layer is not None and head is not None and at is not None:
        record["recomputed"] = _recomputed(question, layer, head, at)
    return record


def _head(layer: int, head: int, found: HeadStatistics, group: int) -> dict[str, Any]:
    numbers = {name: float(getattr(found, name)[head]) for name in STATISTICS}
    return {
        "layer": layer,
        "head": head,
        "kv_head": head // group,
        **{name: None if np.isnan(value) else value for name, value in numbers.items()},
    }


def _recomputed(question: Question, layer: int, head: int, at: int) -> dict[str, Any]:
    kept = Capture(attention=True, scores=True, layer=layer)
    forward = question.engine.forward(question.ids, capture=kept)
    found = derive(forward, layer, head, at, at)
    return {
        "scaling": found.scaling,
        "scores": found.scores.tolist(),
        "weights": found.weights.tolist(),
        "largest_difference": found.difference,
    }


def attention_lines(record: dict[str, Any]) -> Iterator[str]:
    columns = "".join(f"{name:>10}" for name in STATISTICS)
    yield f"{'layer':>5}{'head':>6}{columns}   (entropy in bits, distance in tokens, else shares)"
    for entry in record["heads"]:
        values = [entry[name] for name in STATISTICS]
        if values[0] is not None:
            values[0] = bits(values[0])
        cells = "".join(f"{'–':>10}" if v is None else f"{v:>10.3f}" for v in values)
        yield f"{entry['layer']:>5}{entry['head']:>6}{cells}"
    if record["without_attention"]:
        yield f"no attention in layers {', '.join(map(str, record['without_attention']))}"
    if len(record["heads"]) == 1 and "weights" in record["heads"][0]:
        yield from _row_lines(record)


def _row_lines(record: dict[str, Any]) -> Iterator[str]:
    tokens, weights = record["tokens"], record["heads"][0]["weights"]
    at = record["position"]
    row: Sequence[float] = weights[-1] if at is None else weights
    at = len(tokens) - 1 if at is None else at
    yield f"position {at} ({tokens[at]['label']}) reads:"
    best = sorted(range(at + 1), key=lambda key: (-row[key], key))
    for key in best[:LISTED]:
        yield f"{key:>5}  {row[key]:.6f}  {tokens[key]['label']}"
    rest = best[LISTED:]
    if rest:
        yield f"{'':>5}  {sum(row[key] for key in rest):.6f}  {len(rest)} other positions"
    if "recomputed" in record:
        difference = record["recomputed"]["largest_difference"]
        yield f"recomputed from q and k: largest difference {difference:.1g}"
