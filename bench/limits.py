"""What this machine can do, and what both packaged models make of it.

The same figures as ``python -m core lab roofline``. With ``--record`` they become the first look
of the Limits page, ``core/lab/roofline_recorded.json``, for machines that were not measured yet.
"""

from __future__ import annotations

import argparse
import os

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import json
from dataclasses import asdict

from core.engine.local import LocalEngine
from core.lab.roofline import measure_roof
from core.lab.roofline_ops import counts_of, step_limit
from core.lab.roofline_steps import measure_steps
from core.lab.roofline_store import FORMAT, RECORDED
from core.models.catalog import GEMMA3, SMOLLM2
from core.models.load import load

REPEATS = 11


def rounded(value):
    """The same with five digits a number: a file that people can read."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="store them with the program")
    typed = parser.parse_args()
    *_, end = measure_roof(repeats=REPEATS)
    roof = end.roof
    print(
        f"{roof.machine.processor}: {roof.bandwidth:.1f} GB/s, "
        f"{roof.rate('fp32'):.0f} GFLOP/s fp32, {roof.rate('bf16'):.0f} bf16"
    )
    steps = []
    for entry in (SMOLLM2, GEMMA3):
        engine = LocalEngine(load(entry, device="cpu", dtype="float32"))
        *_, found = measure_steps(engine, repeats=REPEATS)
        steps.append(found)
        for time in found.times:
            limit = step_limit(counts_of(engine, time.case, 4), roof, found.dtype)
            print(
                f"{found.model:<14}{time.case.phase:<8} batch {time.case.batch:>2}: "
                f"{time.time.median:7.1f} ms, limit {limit:6.1f} ms, {limit / time.time.median:.0%}"
            )
        del engine
    if typed.record:
        table = {
            "roof": {"format": FORMAT, **asdict(roof)},
            "steps": [{"format": FORMAT, **asdict(each)} for each in steps],
        }
        text = json.dumps(rounded(table), ensure_ascii=False, indent=1)
        RECORDED.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
