"""Python and the browser give the same answers to the same random questions."""

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from core.decode import choose, draw, probabilities, uniform
from core.decode.measure import descending
from core.settings import STAGE_NAMES, Settings

SCRIPT = Path(__file__).parent / "js" / "decode_answers.mjs"


def questions():
    rng = np.random.default_rng(8)
    for case in range(120):
        size = int(rng.choice([1, 3, 40, 2000]))
        row = rng.normal(0, float(rng.choice([0.5, 3, 20])), size)
        if case % 3 == 0:
            row = np.round(row)  # ties
        if case % 4 == 0:
            row[rng.random(size) < 0.3] = -np.inf
            row[0] = 0
        float32 = bool(rng.random() < 0.5)
        settings = Settings(
            temperature=float(rng.choice([0, 0.01, 0.7, 1, 1.3, 50])),
            top_k=int(rng.integers(1, 60)) if rng.random() < 0.5 else None,
            top_p=float(rng.uniform(0.05, 1)) if rng.random() < 0.6 else None,
            min_p=float(rng.uniform(0, 0.6)) if rng.random() < 0.4 else None,
            typical_p=float(rng.uniform(0.05, 1)) if rng.random() < 0.5 else None,
            order=tuple(rng.permutation(STAGE_NAMES).tolist()),
        )
        yield row.astype(np.float32 if float32 else np.float64), settings, uniform(1, case)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_python_and_javascript_agree():
    asked = list(questions())
    text = json.dumps(
        [
            {
                "logits": [None if x == -np.inf else float(x) for x in row],
                "float32": row.dtype == np.float32,
                "settings": {**dataclasses.asdict(settings), "order": settings.filters},
                "u": u,
            }
            for row, settings, u in asked
        ]
    )
    done = subprocess.run(
        ["node", str(SCRIPT)], input=text, capture_output=True, text=True, check=True, timeout=60
    )
    answers = json.loads(done.stdout)
    assert len(answers) == len(asked) == 120
    for (row, settings, u), answer in zip(asked, answers, strict=True):
        choice = choose(row, settings, step=0)
        p = probabilities(choice.stages[-1].logits)
        assert answer["order"] == descending(row).tolist()
        assert answer["survivors"] == [stage.survivors for stage in choice.stages]
        assert answer["mass"] == pytest.approx([stage.mass for stage in choice.stages], abs=1e-12)
        assert answer["probabilities"] == pytest.approx(p.tolist(), abs=1e-12)
        assert answer["drawn"] == draw(p, u)
        assert answer["nats"] == pytest.approx(choice.entropy_filtered, abs=1e-9)
