"""Python and the browser turn queries and keys in the same way."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from core.model_info import Rope
from core.position import relative, rotate

SCRIPT = Path(__file__).parent / "js" / "rotation_answers.mjs"


def questions():
    rng = np.random.default_rng(12)
    for case in range(40):
        dims = int(rng.choice([2, 8, 64]))
        rope = Rope(
            frequencies=10000.0 ** -(np.arange(dims // 2) * 2 / dims),
            dims=dims,
            layout="halves" if case % 2 else "pairs",
            scaling=1.0 if case % 3 else 1.2,
        )
        q, k = rng.normal(size=(2, dims + int(rng.choice([0, 6]))))
        yield q, k, rope, int(rng.integers(0, 5000)), int(rng.integers(0, 5000))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_python_and_javascript_agree():
    asked = list(questions())
    text = json.dumps(
        [
            {
                "q": q.tolist(),
                "k": k.tolist(),
                "m": m,
                "n": n,
                "rope": {
                    "frequencies": rope.frequencies.tolist(),
                    "dims": rope.dims,
                    "layout": rope.layout,
                    "scaling": rope.scaling,
                },
            }
            for q, k, rope, m, n in asked
        ]
    )
    done = subprocess.run(
        ["node", str(SCRIPT)], input=text, capture_output=True, text=True, check=True, timeout=60
    )
    for (q, k, rope, m, n), answer in zip(asked, json.loads(done.stdout), strict=True):
        expected = relative(q, k, rope, [m - n])
        assert answer["whole"] == pytest.approx(expected.whole[0], abs=1e-9)
        assert answer["pairs"] == pytest.approx(expected.pairs[0].tolist(), abs=1e-9)
        assert answer["dot"] == pytest.approx(rotate(q, m, rope) @ rotate(k, n, rope), abs=1e-8)
