"""The KV cache experiment for people at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.amounts import in_bytes


def lines(record: dict[str, Any]) -> Iterator[str]:
    yield from _steps(record)
    yield from _sizes(record)
    if "rows" in record:
        yield from _rows(record["rows"])
    if "lengths" in record:
        yield from _lengths(record["lengths"])
    if "tricks" in record:
        yield from _tricks(record["tricks"])
    if "reuse" in record:
        yield from _reuse(record["reuse"])
    yield from _others(record["others"])


def _ms(found: dict[str, Any]) -> str:
    ms = found["ms"]
    return f"{ms['median']:.1f} ({ms['low']:.0f}–{ms['high']:.0f})"


def _steps(record: dict[str, Any]) -> Iterator[str]:
    machine = record["machine"]
    yield f"{record['model']} on {machine['processor']}, {machine['threads']} threads (measured)"
    yield (
        f"{'step':>4}  {'token':<16}{'reads':>11}{'ms with cache':>19}{'ms without':>19}"
        f"{'ratio':>7}{'logits differ':>15}"
    )
    for step in record["steps"]:
        with_, without = step["with_cache"], step["without"]
        reads = f"{with_['positions']} or {without['positions']}"
        yield (
            f"{step['step']:>4}  {step['token']:<16}{reads:>11}{_ms(with_):>19}{_ms(without):>19}"
            f"{step['ratio']:>7.1f}{step['difference']:>15.1e}"
        )
    same = "the same tokens" if record["same_tokens"] else "not the same tokens"
    yield f"\n{record['text']}\n"
    yield f"both ways write {same}; largest difference {record['largest_difference']:.1e}"


def _sizes(record: dict[str, Any]) -> Iterator[str]:
    cache = record["cache"]
    yield (
        f"cache of {cache['tokens']} tokens: {cache['bytes']:,} bytes, {cache['bytes_a_token']:,} "
        f"a token; the next token adds {cache['bytes_of_the_next_token']:,} (from the tensors)"
    )


def _others(found: list[dict[str, Any]]) -> Iterator[str]:
    length = found[0]["length"]
    yield (
        f"other models at {length:,} tokens, 2 bytes a number (computed from published "
        "configurations):"
    )
    for other in found:
        yield (
            f"  {other['title']:<18}{other['token_bytes']:>10,} bytes a token"
            f"{in_bytes(other['cache_bytes']):>11}"
        )


def _rows(found: dict[str, Any]) -> Iterator[str]:
    yield f"layer {found['layer']}, KV head {found['kv_head']}: first four numbers of each row"
    for place, (key, value) in enumerate(zip(found["keys"], found["values"], strict=True)):
        numbers = "  ".join(" ".join(f"{x:8.3f}" for x in row[:4]) for row in (key, value))
        yield f"  {found['first_position'] + place:>5}  {numbers}"


def _lengths(points: list[dict[str, Any]]) -> Iterator[str]:
    yield "one step at the end of longer texts (measured):"
    for point in points:
        yield (
            f"  {point['length']:>6} tokens{_ms(point['with_cache']):>19} ms"
            f"{_ms(point['without']):>21} ms{point['ratio']:>8.1f} times"
        )


def _tricks(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"smaller caches of {found['prefix']} tokens, judged on the next {found['positions']} "
        "(measured; KL in nats against the full cache):"
    )
    for one in found["results"]:
        yield (
            f"  {one['trick']:<34}{one['bytes']:>11,} bytes, {one['saved']:>4.0%} saved"
            f"   KL {one['kl']:.4f}   same favourite {one['top1']:.0%}"
        )


def _reuse(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"second prompt: {found['reused']} of {found['second_tokens']} positions taken from the "
        f"first one's cache; {_ms(found['whole'])} ms from its beginning, "
        f"{_ms(found['continued'])} ms so (measured)"
    )
