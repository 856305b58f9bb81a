"""Twenty training steps beside inference, and a text written with a draft, on the default model.

Exits with 1 where the steps do not lower the loss, where the served model is not bit-equal
afterwards, where greedy drafting does not write the greedy text. ``--store`` keeps the figures
for the page.
"""

from __future__ import annotations

import argparse
import os
import sys

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

from core.engine.local import LocalEngine
from core.lab.speculative_records import GAMMA, Speculation, draft_name
from core.lab.speculative_run import speculated
from core.lab.timing import Spread
from core.lab.training_records import OTHER, SENTENCE, Training, ask_of
from core.lab.training_run import trained
from core.lab.training_stored import FILE, as_text, to_plain
from core.models.catalog import DEFAULT
from core.models.load import load
from core.settings import Settings

DRAFTS = ("#int8", "#int4:64", "#neurons:0.3")
KEPT = "#int8"
"""The draft whose text the page shows until a reader runs one."""
STORY = "Once upon a time, there was a little girl who"
NEW = 32


def said(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    return f"{spread.median:.0f} ms ({spread.low:.0f} … {spread.high:.0f})"


def training_of(engine: LocalEngine) -> Training:
    ask = ask_of(engine.vocabulary, SENTENCE, "", OTHER)
    for found in trained(engine, ask):
        last = found
    kept, frozen = last.kept, last.frozen
    assert kept is not None
    assert frozen is not None
    first, final = last.losses[0], last.losses[-1]
    print(f"{len(last.steps)} steps on {SENTENCE!r}: loss {first:.3f} → {final:.3f}")
    print(f"  inference {said(last.inference_ms)}, {kept.inference / 1e6:,.1f} MB")
    print(
        f"  training  {said(last.step_ms)}, {kept.training / 1e6:,.1f} MB: forward "
        f"{said(last.forward_ms)}, backward {said(last.backward_ms)}, update {said(last.update_ms)}"
    )
    for each in last.forgotten:
        print(f"  {each.name:8} KL {each.kl:.4f}  perplexity {each.before:.2f} → {each.after:.2f}")
    print(f"  served model {'bit-equal' if frozen.untouched else 'CHANGED'} afterwards")
    return last


def speculation_of(engine: LocalEngine, draft: str, settings: Settings) -> Speculation:
    other = LocalEngine(load(draft_name(DEFAULT, draft)), memo_bytes=1, kv_bytes=1)
    prompt = engine.vocabulary.read(STORY).ids
    for found in speculated(engine, other, prompt, settings, GAMMA):
        last = found
    print(
        f"{draft:14} {'greedy' if last.greedy else 'T = 0.8'}: kept {last.acceptance or 0:.0%}, "
        f"{last.tokens_per_pass or 0:.2f} tokens a pass (formula {last.expected or 0:.2f}), "
        f"{last.speed or 0:.2f} times as fast (formula {last.expected_speed or 0:.2f}); a pass: "
        f"plain {said(last.plain_ms)}, draft {said(last.draft_ms)}, check {said(last.check_ms)}"
    )
    return last


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true")
    store = parser.parse_args().store
    engine = LocalEngine(load(DEFAULT))
    print(f"load average {os.getloadavg()[0]:.1f}")
    training, wrong = training_of(engine), False
    for draft in DRAFTS:
        for settings in (
            Settings(strategy="greedy", max_new=NEW),
            Settings(temperature=0.8, max_new=NEW),
        ):
            found = speculation_of(engine, draft, settings)
            wrong |= found.greedy and not found.same_text
            if found.greedy and draft == KEPT and store:
                kept = to_plain(training, found, engine.vocabulary)
                FILE.write_text(as_text(kept), encoding="utf-8")
    frozen = training.frozen
    wrong |= training.losses[-1] >= training.losses[0]
    wrong |= frozen is None or not frozen.untouched
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
