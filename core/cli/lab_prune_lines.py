"""``lab prune`` on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.amounts import in_bytes


def lines(record: dict[str, Any]) -> Iterator[str]:
    """The record of the command, as lines."""
    for name, say in (
        ("effect", _effect),
        ("sweep", _sweep),
        ("importance", _importance),
        ("heads_together", _together),
        ("layers_together", _together),
        ("removals", _removals),
        ("crossings", _crossings),
    ):
        if name in record:
            yield from say(record[name])
            if name == "effect":
                yield f"original  {''.join(record['before'])}"
                yield f"edited    {''.join(record['after'])}"
            yield ""
    yield "measured: medians of repeats in turns, quality on this project's own texts"


def _judged(found: dict[str, Any] | None) -> str:
    if found is None:
        return "quality not measured"
    return (
        f"perplexity {found['perplexity']:,.4g} · KL {found['kl']:.4f} nats · "
        f"same favourite {found['top1']:.1%}"
    )


def _size(found: dict[str, Any]) -> str:
    return (
        f"{in_bytes(found['nbytes'])} · {found['parameters']:,} parameters · "
        f"{found['zeros'] / max(found['weights'], 1):.2%} of the layers' weights are 0"
    )


def _times(found: dict[str, Any]) -> str:
    return (
        f"step {found['edited']['median']:.1f} ms, original {found['original']['median']:.1f} ms: "
        f"× {found['ratio']:.2f}"
    )


def _on(found: dict[str, Any]) -> str:
    here = found["machine"]
    stopped = "" if found["done"] else " · stopped before the end"
    return f"measured on {here['processor']}, {here['threads']} threads, {here['date']}{stopped}"


def _effect(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['edit']}: {_judged(found['judged'])}"
    if found["perplexity"] is not None:
        yield f"original: perplexity {found['perplexity']:,.4g}"
    yield f"original: {_size(found['original'])}"
    if found["edited"]:
        yield f"edited:   {_size(found['edited'])}"
    if found["times"]:
        yield _times(found["times"])
    elif found["done"]:
        yield "step: as the original; zeros are multiplied like any other number"
    yield _on(found)


def _sweep(found: dict[str, Any]) -> Iterator[str]:
    yield f"perplexity of the original {found['perplexity']:,.4g}"
    for point in found["points"]:
        share = "2of4" if point["two_of_four"] else f"{point['share']:.0%}"
        yield f"{point['method']:<14}{share:>6}  {_judged(point['judged'])}"
    yield _on(found)


def _importance(found: dict[str, Any]) -> Iterator[str]:
    yield f"nats a token more, without the layer and without each head ({found['tokens']} tokens)"
    for layer, (whole, row) in enumerate(zip(found["layers"], found["heads"], strict=True)):
        yield f"{layer:>4}{whole:>9.3f}  |" + "".join(f"{value:>8.3f}" for value in row)
    yield _on(found)


def _together(found: dict[str, Any]) -> Iterator[str]:
    yield f"the least important {found['kind']} off together: sum of single effects, joint effect"
    for each in found["sums"]:
        yield f"{each['count']:>4}{each['single']:>+9.3f}{each['joint']:>+9.3f}"


def _removals(found: dict[str, Any]) -> Iterator[str]:
    yield f"original: {_size(found['original'])} · perplexity {found['perplexity']:,.4g}"
    for row in found["rows"]:
        yield f"{row['edit']}: {_judged(row['judged'])}"
        yield f"    {in_bytes(row['size']['nbytes'])} · {_times(row['times'])}"
    yield _on(found)


def _crossings(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['name']}, {found['rows']} × {found['columns']}"
    sizes = dict(map(tuple, found["sparse_bytes"]))
    yield f"{'zeros':>6}{'tokens':>8}{'dense':>12}{'CSR':>12}{'memory':>10}"
    for point in found["points"]:
        yield (
            f"{point['zeros']:>6.0%}{point['tokens']:>8}"
            f"{1000 * point['dense']['median']:>9.0f} µs{1000 * point['sparse']['median']:>9.0f} µs"
            f"{sizes[point['zeros']] / found['dense_bytes']:>10.0%}"
        )
    yield _on(found)
