"""`inspect --what lens` and `--what residual`: one position's way through the layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from core.cli.question import Question
from core.cli.records import token_record
from core.decode import probabilities
from core.faults import Fault
from core.lens import Column, distance_to_own, lens_column
from core.neurons import NEAR_ZERO, activity
from core.residual import Stream, stream
from core.trace import Capture, Forward

TOP: Final = 5
PLAIN: Final = Capture(attention=False)
INSIDE: Final = Capture(attention=False, parts=True, neurons=True)


def lens(question: Question) -> dict[str, Any]:
    """What each layer would say at ``--position`` (default: the last), unadjusted.

    The way of one token is followed: the one that comes next in the prompt, or the model's
    favourite at the end of it.
    """
    forward, at, layers = _read(question, PLAIN)
    following = question.ids[at + 1 : at + 2]
    column = lens_column(question.engine, forward, at, following, top=TOP)
    record = _about(question, at)
    record["followed"] = _token(question, column.followed[0])
    record["layers"] = [_lens_layer(question, column, layer) for layer in layers]
    if at == len(question.ids) - 1:
        own = probabilities(forward.logits)
        record["model_distribution"] = [
            {**_token(question, int(token)), "probability": float(own[token])}
            for token in column.ids[-1]
        ]
        record["largest_difference"] = distance_to_own(column, forward)
    return record


def _lens_layer(question: Question, column: Column, layer: int) -> dict[str, Any]:
    return {
        "layer": layer,
        "top": [
            {**_token(question, int(token)), "probability": float(p)}
            for token, p in zip(column.ids[layer], column.probabilities[layer], strict=True)
        ],
        "followed_probability": float(column.followed_probability[layer, 0]),
        "followed_rank": int(column.followed_rank[layer, 0]),
    }


def lens_lines(record: dict[str, Any]) -> Iterator[str]:
    followed = record["followed"]["label"]
    yield f"after each layer, at position {record['position']} ({record['token']['label']}):"
    yield f"{'layer':>5}  {followed[:16]:>16}{'rank':>8}  the layer's favourites (unadjusted)"
    for row in record["layers"]:
        best = ", ".join(f"{token['label']} {token['probability']:.1%}" for token in row["top"])
        yield (
            f"{row['layer']:>5}  {row['followed_probability']:>16.2%}"
            f"{row['followed_rank']:>8,}  {best}"
        )
    if "largest_difference" in record:
        yield (
            "the last row is the model's own distribution; largest difference "
            f"{record['largest_difference']:.1g}"
        )


def residual(question: Question) -> dict[str, Any]:
    """Lengths, additions and angles of the residual stream at ``--position``."""
    forward, at, layers = _read(question, INSIDE)
    found = stream(forward, at)
    silent = activity(forward, at)
    record = _about(question, at)
    record["embedding"] = {"size": float(found.size[0]), "cosine": float(found.cosine[0])}
    record["near_zero_below"] = NEAR_ZERO
    record["layers"] = [
        {
            **_residual_layer(found, layer),
            "near_zero": None if silent is None else float(silent.near_zero[layer]),
        }
        for layer in layers
    ]
    record["sum_error"] = None if found.parts is None else found.parts.error
    return record


def _residual_layer(found: Stream, layer: int) -> dict[str, Any]:
    parts = found.parts
    return {
        "layer": layer,
        "size": float(found.size[layer + 1]),
        "change": float(found.change[layer]),
        "attention": None if parts is None else float(parts.attention[layer]),
        "feed_forward": None if parts is None else float(parts.feed_forward[layer]),
        "attention_along": None if parts is None else float(parts.attention_along[layer]),
        "feed_forward_along": None if parts is None else float(parts.feed_forward_along[layer]),
        "cosine": float(found.cosine[layer + 1]),
    }


def residual_lines(record: dict[str, Any]) -> Iterator[str]:
    yield f"the residual stream at position {record['position']} ({record['token']['label']}):"
    yield (
        f"{'layer':>5}{'size':>11}{'change':>11}{'attention':>11}{'feed-fwd':>11}"
        f"{'cosine':>9}{'near zero':>11}"
    )
    start = record["embedding"]
    yield f"{'–':>5}{start['size']:>11.4g}{'':>33}{start['cosine']:>9.3f}"
    for row in record["layers"]:
        numbers = [row[name] for name in ("size", "change", "attention", "feed_forward")]
        silent = row["near_zero"]
        yield (
            f"{row['layer']:>5}"
            + "".join(f"{'–' if n is None else f'{n:.4g}':>11}" for n in numbers)
            + f"{row['cosine']:>9.3f}{'–' if silent is None else f'{silent:.1%}':>11}"
        )
    if record["sum_error"] is not None:
        yield (
            "stream before + attention + feed-forward = stream after; largest difference "
            f"{record['sum_error']:.1g} of the largest number"
        )


def _read(question: Question, capture: Capture) -> tuple[Forward, int, range]:
    """(pass over the prompt, position, layers asked for)."""
    at = question.place("position", question.position, len(question.ids))
    info = question.engine.info
    if info.layers == 0:
        raise Fault("toy_no_layers")
    layer = question.place("layer", question.layer, info.layers)
    layers = range(info.layers) if layer is None else range(layer, layer + 1)
    forward = question.engine.forward(question.fits(), capture=capture)
    return forward, len(question.ids) - 1 if at is None else at, layers


def _about(question: Question, at: int) -> dict[str, Any]:
    return {
        "model": question.spec.model,
        "prompt": question.spec.prompt,
        "position": at,
        "token": token_record(question.tokens[at]),
    }


def _token(question: Question, token: int) -> dict[str, Any]:
    vocabulary = question.vocabulary
    return {"id": token, "text": vocabulary.text([token]), "label": vocabulary.label(token)}
