"""``lab quantize`` on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from core.amounts import in_bytes

CODES: Final = "computed; embeddings and LM head, unless they are rounded too, in 16 bits"
"""How the bytes of codes are counted that nobody holds."""


def lines(record: dict[str, Any]) -> Iterator[str]:
    """The same in plain lines."""
    origin = record["origin"]
    yield _measured(record)
    for one in origin["on_grids"]:
        yield (
            f"{one['tensors']} of {origin['tensors']} tensors already sit on the grid "
            f"{one['grid']}: this reference is rounded itself"
        )
    if "setting" in record:
        yield from _setting_lines(record["setting"])
    if "sweep" in record:
        yield from _sweep_lines(record["sweep"])
    if "speed" in record:
        yield from _speed_lines(record["speed"])


def _measured(record: dict[str, Any]) -> str:
    """Whose weights, and on which machine."""
    parts = (record[name] for name in ("setting", "sweep", "speed") if name in record)
    here = next(parts)["machine"]
    return f"{record['model']} on {here['processor']}, {here['threads']} threads (measured)"


def _setting_lines(found: dict[str, Any]) -> Iterator[str]:
    what = "really stored" if found["really_stored"] else "rounded"
    yield f"{found['edit']} ({what})"
    quality = found["quality"]
    if quality:
        yield (
            f"KL {quality['kl']:.4g} nats, same favourite {quality['top1']:.1%}, perplexity "
            f"{found['perplexity_before']:.4g} → {quality['perplexity']:.4g} "
            f"({quality['positions']} positions)"
        )
        yield _sizes(found["bytes_before"], quality["bytes"], stored=found["really_stored"])
    for one in found["next_tokens"]:
        yield f"  {one['token']:<16} {one['before']:8.2%} → {one['after']:8.2%}"
    yield f"before: {found['text_before']!r}"
    yield f"after:  {found['text_after']!r}"


def _sizes(before: int, after: int, *, stored: bool) -> str:
    """Bytes that are really held, or those that such codes would take: never one as the other."""
    if stored:
        return f"in memory: {in_bytes(before)} → {in_bytes(after)}"
    return (
        f"in memory: {in_bytes(before)}, unchanged, because rounded weights are computed with as "
        f"before · size of such codes: {in_bytes(after)} ({CODES})"
    )


def _sweep_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"{'edit':<28} {'KL':>9} {'same':>7} {'perplexity':>11} {'size of codes':>14}"
    yield f"{'(as loaded)':<28} {0:>9} {1:>7.0%} {found['perplexity_before']:>11.4g}"
    for one in found["points"]:
        yield (
            f"{one['edit']:<28} {one['kl']:>9.4g} {one['top1']:>7.1%} "
            f"{one['perplexity']:>11.4g} {in_bytes(one['bytes']):>14}"
        )
    yield f"in memory, as loaded: {in_bytes(found['bytes_before'])} · size of codes: {CODES}"


def _speed_lines(found: dict[str, Any]) -> Iterator[str]:
    times = f"{'step':>9} {'ratio':>6} {'prefill':>9} {'ratio':>6}"
    yield f"{'stored as':<16} {'in memory':>9} {times} {'KL':>8}"
    for one in found["rows"]:
        ratios = (one["step_ratio"] or 0.0, one["prefill_ratio"] or 0.0)
        yield (
            f"{one['edit'] or '(as loaded)':<16} {in_bytes(one['bytes']):>9} "
            f"{one['step_ms']['median']:>6.1f} ms {ratios[0]:>6.2f} "
            f"{one['prefill_ms']['median']:>6.0f} ms {ratios[1]:>6.2f} {one['kl'] or 0:>8.2g}"
        )
    if found["not_installed"]:
        yield f"not installed (pip install bitsandbytes): {', '.join(found['not_installed'])}"
