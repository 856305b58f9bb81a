"""What the Probabilities component and its table are given: exact numbers, bounded bytes."""

import base64
import csv
import io
import json

import numpy as np
import pytest

from core.decode import choose
from core.decode.past import Past
from core.decode.rules import Rules
from core.settings import PROCESSOR_NAMES, STAGE_NAMES, Settings
from ui.figures.stages import (
    LABEL_BYTES,
    Scene,
    csv_of,
    labels_blob,
    logits_blob,
    probability_columns,
    stages_data,
    stages_table,
)
from ui.i18n import catalog
from ui.typed import parse

EN, ZH = catalog("en"), catalog("zh")
LABELS = ("a", "=1+1", "<img src=x onerror=alert(1)>", "d")


def scene(settings=Settings(top_p=0.8), probabilities=(0.5, 0.3, 0.15, 0.05), labels=LABELS):
    logits = np.log(np.array(probabilities))
    choice = choose(logits, settings, step=0)
    return Scene(logits, choice, settings, 0, labels.__getitem__)


def large(size=5000, settings=Settings(temperature=1.3, top_k=700), rules=None):
    logits = np.random.default_rng(7).normal(size=size).astype(np.float32)
    past = Past((5, 9, 5, 7), 1)
    choice = choose(logits, settings, step=3, past=past, rules=rules)
    return Scene(logits, choice, settings, 3, lambda i: f"t{i}", past)


# --- data for the component


def test_the_data_is_plain_json_and_names_its_arrays():
    data = stages_data(scene(), EN, scores="logits64:x", labels=None)
    assert json.loads(json.dumps(data)) == data
    assert data["logits"] == "logits64:x"
    assert data["labels"] is None
    assert data["lang"] == "en"
    assert stages_data(scene(), ZH, scores="x", labels=None)["lang"] == "zh-Hans"


def test_settings_travel_as_they_are_with_null_for_off():
    data = stages_data(scene(), EN, scores="x", labels=None)
    assert data["settings"] == {
        "temperature": 1.0,
        "top_k": None,
        "top_p": 0.8,
        "min_p": None,
        "typical_p": None,
        "repetition_penalty": None,
        "presence_penalty": None,
        "frequency_penalty": None,
        "no_repeat_ngram": None,
        "banned": [],
        "pattern": "",
        "order": ["temperature", "top_k", "top_p", "min_p"],
    }
    assert data["strategy"] == "sample"
    assert data["u"] == pytest.approx(0.33233475, abs=1e-8)  # of seed 0, step 0
    assert data["forced"] is None
    assert not data["can_force"]


def test_the_check_holds_the_filtered_probabilities_of_the_top_tokens():
    check = stages_data(scene(), EN, scores="x", labels=None)["check"]
    assert check["ids"] == [0, 1, 2, 3]
    assert check["after"] == pytest.approx([0.625, 0.375, 0, 0])
    assert check["chosen"] == 0


def test_a_large_vocabulary_sends_a_hundred_labels_and_the_chosen_one():
    shown = large()
    data = stages_data(shown, EN, scores="x", labels="labels:y")
    ids = [id for id, _ in data["top"]]
    assert ids[:100] == data["check"]["ids"] == list(np.argsort(-shown.logits, kind="stable")[:100])
    assert shown.choice.id in ids
    assert dict(data["top"])[shown.choice.id] == f"t{shown.choice.id}"
    assert len(json.dumps(data)) < 30_000
    assert data["can_force"]


def test_a_forced_token_is_named():
    data = stages_data(scene(Settings(forced=((0, 3),))), EN, scores="x", labels=None)
    assert data["forced"] == 3


# --- the stages that look at the text


def bits(sent: str, size: int) -> list[int]:
    """The ids that were sent as one bit each."""
    row = np.unpackbits(np.frombuffer(base64.b64decode(sent), np.uint8), bitorder="little")
    return np.flatnonzero(row[:size]).tolist()


def test_the_text_travels_as_its_tokens_with_the_times_each_was_generated():
    data = stages_data(large(), EN, scores="x", labels=None)
    assert data["text"] == [(5, 1), (7, 1), (9, 1)]  # the first 5 stands in the prompt
    assert data["forbidden"] == {}
    assert data["has_text"]
    few = large(size=8)
    assert stages_data(few, EN, scores="x", labels=None)["text"] == [(5, 1), (7, 1)]


def test_typed_numbers_have_no_text_and_what_looks_at_one_rests():
    settings = Settings(repetition_penalty=2, banned=("x",), pattern="y", forced=((0, 1),))
    found = Scene.by_hand(settings, parse("probabilities", "a 0.5, b 0.5"))
    data = stages_data(found, EN, scores="x", labels=None)
    assert (data["text"], data["has_text"], data["forced"]) == ([], False, None)
    assert data["settings"]["repetition_penalty"] is None
    assert (data["settings"]["banned"], data["settings"]["pattern"]) == ([], "")
    assert data["check"]["after"] == [0.5, 0.5]


def test_forbidden_tokens_are_named_one_by_one_while_they_are_few():
    settings = Settings(no_repeat_ngram=1)
    data = stages_data(large(settings=settings), EN, scores="x", labels=None)
    assert data["forbidden"] == {"no_repeat_ngram": [5, 7, 9]}
    assert data["settings"]["no_repeat_ngram"] == 1


def test_many_forbidden_tokens_are_sent_as_bits():
    class Half:
        def allowed(self, generated):
            assert generated == (9, 5, 7)
            return np.arange(5000) % 2 == 0

    settings = Settings(pattern="x", no_repeat_ngram=1)
    shown = large(settings=settings, rules=Rules(pattern=Half()))
    sent = stages_data(shown, EN, scores="x", labels=None)["forbidden"]
    assert sent["no_repeat_ngram"] == [5, 7, 9]
    # Those that were gone before are not forbidden a second time.
    assert bits(sent["pattern"], 5000) == [i for i in range(1, 5000, 2) if i not in (5, 7, 9)]


def test_a_forced_token_where_the_rules_leave_none_shows_no_rule_at_work():
    class Nothing:
        def allowed(self, generated):
            return np.zeros(5000, dtype=bool)

    settings = Settings(pattern="x", forced=((3, 8),))
    shown = large(settings=settings, rules=Rules(pattern=Nothing()))
    data = stages_data(shown, EN, scores="x", labels=None)
    assert data["text"] == []
    assert data["forbidden"] == {"no_repeat_ngram": [], "banned": [], "pattern": []}
    assert (data["forced"], data["settings"]["pattern"]) == (8, "x")


def test_the_table_has_a_column_for_each_stage_and_names_who_removed():
    settings = Settings(no_repeat_ngram=1, repetition_penalty=1.5, typical_p=0.2)
    shown = large(size=40, settings=settings)
    frame = stages_table(shown, 40, EN)
    names = probability_columns(shown.choice, EN)
    assert names[1:3] == ["after repetition penalty", "after no-repeat n-gram"]
    assert names[-1] == "after typical-p"
    for name in names:
        assert frame[name].sum() == pytest.approx(1, abs=1e-9)
    by = dict(zip(frame["id"], frame["removed by"], strict=True))
    assert [by[id] for id in (5, 7, 9)] == ["no-repeat n-gram"] * 3
    assert "typical-p" in set(by.values())
    assert set(probability_columns(shown.choice, ZH)) <= set(stages_table(shown, 9, ZH).columns)


@pytest.mark.parametrize("name", [*STAGE_NAMES, *PROCESSOR_NAMES])
def test_every_stage_has_its_names_in_both_languages_wherever_stages_are_named(name):
    for t in (EN, ZH):
        for key in ("term", "plain", "rule"):
            if (name, key) != ("temperature", "rule"):
                assert t(f"probabilities.{name}_{key}", value=1, n=1, best=1, line=1, bits=1)
        assert t(f"generate.stage_{name}")
        assert t(f"home.{name}")
        assert t(f"frame.{name}")
        assert t(f"frame.{name}_help")


# --- the arrays


@pytest.mark.parametrize(("dtype", "kind"), [(np.float32, "logits"), (np.float64, "logits64")])
def test_logits_travel_as_raw_little_endian_numbers(dtype, kind):
    logits = np.array([1.5, -np.inf, 3.25], dtype=dtype)
    id, blob = logits_blob(logits)
    assert id.startswith(kind + ":")
    assert np.frombuffer(blob, logits.dtype.newbyteorder("<")).tolist() == logits.tolist()
    assert logits_blob(logits + 1)[0] != id


def test_labels_travel_one_a_line_and_never_more_than_the_budget():
    id, blob = labels_blob(["␣the", "的", "↵"])
    assert id.startswith("labels:")
    assert blob.decode().split("\n") == ["␣the", "的", "↵"]
    _, blob = labels_blob([f"{'x' * 20}{i}" for i in range(262_144)])
    lines = blob.decode().split("\n")
    assert LABEL_BYTES - 30 < len(blob) <= LABEL_BYTES
    assert lines[-1] == f"{'x' * 20}{len(lines) - 1}"


def test_the_largest_vocabulary_stays_below_five_megabytes():
    _, scores = logits_blob(np.zeros(262_144, dtype=np.float32))
    assert len(scores) + LABEL_BYTES < 5_000_000


# --- the table


def test_the_table_follows_each_token_through_the_stages():
    frame = stages_table(scene(), 20, EN)
    assert list(frame.columns) == [
        "rank", "token", "id", "score (logit)", "model's probability", "after temperature",
        "after top-k", "after top-p", "after min-p", "removed by", "chosen",
    ]  # fmt: skip
    assert frame["after top-k"].tolist() == pytest.approx([0.5, 0.3, 0.15, 0.05])
    assert frame["after top-p"].tolist() == pytest.approx([0.625, 0.375, 0, 0])
    assert frame["removed by"].tolist() == ["", "", "top-p", "top-p"]
    assert frame["chosen"].tolist() == ["◀", "", "", ""]
    assert frame["rank"].tolist() == [1, 2, 3, 4]


def test_the_columns_stand_in_the_order_applied_and_in_the_reader_s_language():
    settings = Settings(order=("top_p", "temperature", "top_k", "min_p"))
    names = probability_columns(scene(settings).choice, ZH)
    assert names == ["模型概率", "top-p之后", "温度之后", "top-k之后", "min-p之后"]
    assert set(names) <= set(stages_table(scene(settings), 20, ZH).columns)


def test_every_column_of_a_large_vocabulary_adds_up_to_one():
    shown = large()
    frame = stages_table(shown, 20, EN)
    assert frame["token"].iloc[-1].startswith("all others (4,9")
    for name in probability_columns(shown.choice, EN):
        assert frame[name].sum() == pytest.approx(1, abs=1e-9)


def test_a_download_holds_no_formula_and_reads_back():
    text = csv_of(stages_table(scene(), 20, EN)).decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text)))
    assert [row[1] for row in rows[1:]] == ["a", "'=1+1", "<img src=x onerror=alert(1)>", "d"]
    assert [float(row[7]) for row in rows[1:]] == pytest.approx([0.625, 0.375, 0, 0])


@pytest.mark.parametrize("label", ["=cmd()", "+1", "-1", "@x", "\tx"])
def test_each_beginning_of_a_formula_is_guarded(label):
    frame = stages_table(scene(labels=(label, "b", "c", "d")), 20, EN)
    assert frame["token"][0] == f"'{label}"
