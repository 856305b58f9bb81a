"""How much each head and each layer matters: what becomes of a text's prediction without it.

The model is lent for one pass at a time and stays as it is; a head that is off writes nothing,
a layer that is off passes its input on, as everywhere here.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from core.engine.inside import skipping
from core.engine.local import LocalEngine
from core.engine.traced import parts_of, without_heads
from core.faults import Fault
from core.lab.machine import machine
from core.lab.prune_records import Importance, Ranking, Sum, Together
from core.lab.quality import following, log_probs
from core.lab.texts import text

TEXTS: Final = ("prose", "facts")
MOST: Final = 256
"""Tokens of them, together."""
SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Of all heads, or layers, that are switched off together."""
Head = tuple[int, int]


def text_ids(engine: LocalEngine, most: int = MOST) -> tuple[int, ...]:
    """The text that is predicted."""
    whole = "\n\n".join(text(name) for name in TEXTS)
    return engine.vocabulary.read(whole, literal=True).ids[: min(most, engine.info.context)]


def surprise(
    engine: LocalEngine,
    ids: Sequence[int],
    heads: Sequence[Head] = (),
    layers: Sequence[int] = (),
) -> float:
    """Mean of −ln p of the tokens that really follow, in nats, with these switched off.

    Raises Fault for a model whose layers cannot be found.
    """
    with engine.borrowed() as model, ExitStack() as changes:
        parts = parts_of(model, engine.info.layers)
        if parts is None:
            raise Fault("layers_not_readable", architecture=engine.info.architecture)
        if heads:
            changes.enter_context(without_heads(heads))
        if layers:
            changes.enter_context(skipping(parts, layers))
        found = log_probs(model, ids)
    return -float(following(found, ids).mean())


def importance(engine: LocalEngine, *, most: int = MOST) -> Generator[Importance, None, None]:
    """One pass of the text without each layer, and without each head."""
    info, ids = engine.info, text_ids(engine, most)
    blank = tuple((math.nan,) * info.heads for _ in range(info.layers))
    now = Importance(
        texts=TEXTS, tokens=len(ids), surprise=surprise(engine, ids),
        layers=(math.nan,) * info.layers, heads=blank,
        machine=machine(info.device), progress=0.0, done=False,
    )  # fmt: skip
    yield now
    # A layer that keeps a state instead of attention has no heads to switch off.
    headless = set(info.without_attention)
    passes, made = info.layers * (info.heads + 1), 0
    layers, heads = list(now.layers), [list(row) for row in blank]
    for layer in range(info.layers):
        layers[layer] = surprise(engine, ids, layers=(layer,)) - now.surprise
        for head in (-1, *range(info.heads)):
            if head >= 0 and layer not in headless:
                found = surprise(engine, ids, heads=((layer, head),))
                heads[layer][head] = found - now.surprise
            made += 1
            now = replace(
                now,
                layers=tuple(layers),
                heads=tuple(map(tuple, heads)),
                progress=made / passes,
                done=made == passes,
            )
            yield now


def ranking(engine: LocalEngine, *, most: int = MOST) -> Generator[Ranking, None, None]:
    """``importance``, and then ``together`` of heads and of layers."""
    found: Importance | None = None
    for found in importance(engine, most=most):
        yield Ranking(found, None, None, 0.95 * found.progress, done=False)
    assert found is not None
    heads = layers = None
    for heads in together(engine, found, most=most):
        yield Ranking(found, heads, None, 0.95 + 0.025 * heads.progress, done=False)
    for layers in together(engine, found, "layers", most=most):
        progress = 0.975 + 0.025 * layers.progress
        yield Ranking(found, heads, layers, progress, done=layers.done)


def counts(total: int) -> tuple[int, ...]:
    """How many go together: shares of all, at least one, never all, each once."""
    found = {min(max(round(share * total), 1), max(total - 1, 1)) for share in SHARES}
    return tuple(sorted({1, *found}))


def together(
    engine: LocalEngine, found: Importance, kind: str = "heads", *, most: int = MOST
) -> Generator[Together, None, None]:
    """The least important heads, or layers, off together, beside the sum of single effects."""
    ids = text_ids(engine, most)
    if kind == "layers":
        numbers = found.ranked_layers
        single = [found.layers[layer] for layer in numbers]
    else:
        pairs = found.ranked_heads
        single = [found.heads[layer][head] for layer, head in pairs]
    own = surprise(engine, ids)
    now = Together(kind, (), own, machine(engine.info.device), 0.0, done=False)
    yield now
    wanted = counts(len(single))
    for number, count in enumerate(wanted, 1):
        if kind == "layers":
            joint = surprise(engine, ids, layers=numbers[:count])
        else:
            joint = surprise(engine, ids, heads=pairs[:count])
        step = Sum(count, math.fsum(single[:count]), joint - own)
        now = replace(
            now,
            sums=(*now.sums, step),
            progress=number / len(wanted),
            done=number == len(wanted),
        )
        yield now
