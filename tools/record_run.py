"""Record the stored run that is shown while the default model loads.

    python tools/record_run.py        (after: python -m core models fetch smollm2-135m)

Run it again when the records, the default prompt or the default settings change.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from core.decode.generate import generate
from core.engine.local import LocalEngine
from core.models.catalog import DEFAULT as MODEL
from core.models.catalog import resolve
from core.models.load import load
from core.recorded import STORED, record
from ui.link import DEFAULT as SPEC

STEPS = 4


def main() -> None:
    loaded = load(resolve(MODEL))
    engine = LocalEngine(loaded)
    ids = engine.vocabulary.encode(SPEC.prompt).ids
    steps = list(generate(engine, ids, SPEC.settings, steps=STEPS))
    for old in STORED.glob("*"):
        old.unlink()
    record(
        engine,
        [(step.forward, step.choice.id) for step in steps],
        tokenizer_json=loaded.tokenizer.to_str(),
        chat_template=loaded.chat_template,
        about={"date": datetime.datetime.now(datetime.UTC).date().isoformat()},
    )
    sizes = {path.name: path.stat().st_size for path in sorted(STORED.glob("*"))}
    print(f"{len(steps)} steps of {MODEL}, {sum(sizes.values()):,} bytes: {sizes}")


if __name__ == "__main__":
    main()
