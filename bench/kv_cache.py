"""A step with the KV cache against one without it, at the end of texts of up to 1,024 tokens.

Both take turns in one process, so whatever disturbs the machine disturbs both: the ratio is what
to trust. Their logits may differ by 5e-4 at most, and the ratio has to grow with the text; exits
with 1 where that is not so. ``--store`` keeps the figures for the KV cache page, with what
smaller caches save and cost.
"""

from __future__ import annotations

import argparse
import os
import sys

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

from core.engine.local import LocalEngine
from core.lab.kv_contexts import LENGTHS, REPEATS, at_lengths
from core.lab.kv_records import Contexts, Tricks
from core.lab.kv_stored import store
from core.lab.kv_tricks import tried
from core.lab.kv_words import trick_text
from core.models.catalog import DEFAULT
from core.models.load import load

MODELS = (DEFAULT, "gemma3-270m")
CLOSE = 5e-4


def contexts_of(engine: LocalEngine, lengths: tuple[int, ...], repeats: int) -> Contexts:
    for found in at_lengths(engine, lengths, repeats):
        last = found
    machine = last.machine
    print(
        f"\n{last.model}: {machine.processor}, {machine.threads} of {machine.cores} threads, "
        f"load average {os.getloadavg()[0]:.1f}"
    )
    print("  tokens   with cache (low … high)      without (low … high)        ratio  difference")
    for point in last.points:
        with_, without = point.cached_ms, point.whole_ms
        print(
            f"  {point.length:6}{with_.median:9.1f} ms ({with_.low:.0f} … {with_.high:.0f})"
            f"{without.median:14.1f} ms ({without.low:.0f} … {without.high:.0f})"
            f"{point.ratio:12.1f}{point.difference:12.1e}"
        )
    return last


def tricks_of(engine: LocalEngine) -> Tricks:
    for found in tried(engine):
        last = found
    print(f"  smaller caches of {last.prefix} tokens, judged on the next {last.positions}:")
    for one in last.results:
        print(
            f"  {trick_text(one.trick):30}{one.nbytes / 1e6:8.2f} of {one.full_bytes / 1e6:.2f} MB"
            f"   KL {one.kl:.4f}   same favourite {one.top1:.0%}"
        )
    return last


def holds(found: Contexts) -> bool:
    ratios = [point.ratio for point in found.points]
    close = all(point.difference <= CLOSE for point in found.points)
    return close and ratios == sorted(ratios)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", action="append", help="may be given twice (default: both)")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--store", action="store_true", help="keep the figures for the page")
    choice = parser.parse_args()
    kept: dict[str, tuple[Contexts, Tricks]] = {}
    fine = True
    for name in choice.model or MODELS:
        engine = LocalEngine(load(name, device="cpu", dtype="float32"))
        found = contexts_of(engine, tuple(choice.lengths), choice.repeats)
        fine = fine and holds(found)
        kept[name] = (found, tricks_of(engine))
    print("\nAs it should be." if fine else "\nThe ratio does not grow, or the logits differ.")
    if choice.store:
        store(kept)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
