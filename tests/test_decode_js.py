"""Python and the browser give the same answers to the same random questions."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from core.decode import Past, Rules, choose, draw, probabilities, uniform
from core.decode.measure import descending
from core.settings import PROCESSOR_NAMES, STAGE_NAMES, Settings
from ui.figures.stages_text import settings_data, text_data

SCRIPT = Path(__file__).parent / "js" / "decode_answers.mjs"
NO_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def sometimes(rng, share, value):
    return value if rng.random() < share else None


def rows(rng, case):
    size = int(rng.choice([1, 3, 40, 2000]))
    row = rng.normal(0, float(rng.choice([0.5, 3, 20])), size)
    if case % 3 == 0:
        row = np.round(row)  # ties
    if case % 4 == 0:
        row[rng.random(size) < 0.3] = -np.inf
        row[0] = 0
    return row.astype(np.float32 if rng.random() < 0.5 else np.float64)


def filters(rng):
    return {
        "temperature": float(rng.choice([0, 0.01, 0.7, 1, 1.3, 50])),
        "top_k": sometimes(rng, 0.5, int(rng.integers(1, 60))),
        "top_p": sometimes(rng, 0.6, float(rng.uniform(0.05, 1))),
        "min_p": sometimes(rng, 0.4, float(rng.uniform(0, 0.6))),
        "typical_p": sometimes(rng, 0.5, float(rng.uniform(0.05, 1))),
        "order": tuple(rng.permutation(STAGE_NAMES).tolist()),
    }


def asked(row, settings, u, sent=None):
    return {
        "logits": [None if x == -np.inf else float(x) for x in row],
        "float32": row.dtype == np.float32,
        "settings": settings_data(settings),
        "u": u,
        "sent": sent,
    }


def answered(questions):
    done = subprocess.run(
        ["node", str(SCRIPT)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answers = json.loads(done.stdout)
    assert len(answers) == len(questions)
    return answers


def same(choice, stages, answer, u):
    """The filters' stages, and what they lead to."""
    p = probabilities(stages[-1].logits)
    assert answer["survivors"] == [stage.survivors for stage in stages]
    assert answer["mass"] == pytest.approx([stage.mass for stage in stages], abs=1e-12)
    assert answer["probabilities"] == pytest.approx(p.tolist(), abs=1e-12)
    assert answer["drawn"] == draw(p, u)
    assert answer["nats"] == pytest.approx(choice.entropy_filtered, abs=1e-9)


@NO_NODE
def test_python_and_javascript_agree():
    rng = np.random.default_rng(8)
    cases = [(rows(rng, i), Settings(**filters(rng)), uniform(1, i)) for i in range(160)]
    for (row, settings, u), answer in zip(cases, answered([asked(*c) for c in cases]), strict=True):
        choice = choose(row, settings, step=0)
        assert answer["order"] == descending(row).tolist()
        same(choice, choice.stages, answer, u)


@NO_NODE
def test_they_agree_behind_what_looks_at_the_text():
    rng = np.random.default_rng(9)
    cases, questions = [], []
    for i in range(120):
        row = rows(rng, i)
        settings = Settings(
            **filters(rng),
            repetition_penalty=sometimes(rng, 0.6, float(rng.uniform(0.3, 4))),
            presence_penalty=sometimes(rng, 0.5, float(rng.uniform(-3, 3))),
            frequency_penalty=sometimes(rng, 0.5, float(rng.uniform(-3, 3))),
            no_repeat_ngram=sometimes(rng, 0.4, 2),
            banned=("x",) if row.size > 1 and rng.random() < 0.5 else (),
        )
        # Ids beyond the scores are words of a prompt that the model cannot choose.
        ids = rng.integers(0, row.size + 2, 30) % max(1, row.size)
        past = Past(tuple(ids.tolist()), int(rng.integers(0, 30)))
        rules = Rules(((int(row.argmax()),),) if row.size > 3 else ())
        try:
            choice = choose(row, settings, step=0, past=past, rules=rules)
        except ValueError:
            continue  # nothing is left: no question for the browser
        cases.append((settings, choice))
        questions.append(
            asked(row, settings, uniform(2, i), text_data(row, choice, settings, past))
        )
    assert len(cases) > 80
    for (settings, choice), question, answer in zip(
        cases, questions, answered(questions), strict=True
    ):
        stages = tuple(s for s in choice.stages if s.name not in PROCESSOR_NAMES)
        same(choice, stages, answer, question["u"])
        if settings.is_greedy:
            assert answer["highest"] == choice.id
