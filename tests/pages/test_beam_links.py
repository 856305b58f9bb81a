"""End tokens on the Beam search page, and links to it that somebody has spoiled."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from core.decode import beam_search
from core.settings import BeamSettings
from tests.pages.app import data_of, healthy, open_app, query_of, words
from ui import beam
from ui.i18n import catalog
from ui.state import store

PAGE = "7_Beam_search"
LANGS = ["en", "zh"]


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    monkeypatch.setattr(beam, "MOMENT", 60)


def open_tiny(**query: str) -> AppTest:
    given = {"model": "tiny", "prompt": "the thing", "max": "4", "beams": "3", "lang": "en"}
    return open_app(PAGE, **{**given, **query})


def searched(at: AppTest) -> bool:
    return any(b.proto.component_name == "tbt_beam" for b in at.get("bidi_component"))


# --- end tokens


@pytest.mark.parametrize("lang", LANGS)
def test_end_tokens_are_added_and_taken_away(lang):
    at, t = open_tiny(lang=lang), catalog(lang)
    field = at.multiselect(key="beam_ends")
    assert field.value == ["#own"]
    assert field.options == [t("beam_search.ends_own")]
    assert "end" not in query_of(at)
    first = data_of(at, "beam")["steps"][0]["candidates"][0]
    id = data_of(at, "beam")["ids"][first["label"]]
    healthy(at.multiselect(key="beam_ends").set_value(["#own", f"#{id}", "."]).run())
    assert query_of(at)["end"] == f"#{id}\n."
    data = data_of(at, "beam")
    assert data["steps"][0]["candidates"][0]["end"]
    engine = store().engine("tiny")
    ids = engine.vocabulary.read("the thing").ids
    expected = beam_search(engine, ids, BeamSettings(width=3, max_new=4, ends=(f"#{id}", ".")))
    assert [row["sum"] for row in data["ranking"]] == pytest.approx(
        [h.logprob for h in expected.hypotheses]
    )
    label = engine.vocabulary.label(id)
    both = t("generate.list_join").join((f"“{label}”", "“.”"))
    assert both in words(at).replace("\\", "")
    healthy(at.multiselect(key="beam_ends").set_value(["\\n"]).run())
    assert query_of(at)["end"] == "\\n\n#none"
    assert f"“{engine.vocabulary.label(engine.info.end_ids[0])}”" not in words(at)
    assert "“↵”" in words(at)
    healthy(at.multiselect(key="beam_ends").set_value([]).run())
    assert t("beam_search.end_none", limit=4) in words(at)
    healthy(at.multiselect(key="beam_ends").set_value(["#own"]).run())
    assert "end" not in query_of(at)


@pytest.mark.parametrize("lang", LANGS)
def test_a_text_of_several_tokens_says_which_they_are(lang):
    at = open_tiny(lang=lang, end="the end.")
    engine = store().engine("tiny")
    ids = engine.vocabulary.encode("the end.").ids
    n, pieces = len(ids), " · ".join(map(engine.vocabulary.label, ids))
    t = catalog(lang)
    expected = t("fault.end_several_tokens", text="the␣end.", n=n, pieces=pieces)
    assert at.error[0].value.replace("\\", "") == expected
    assert not searched(at)
    healthy(at.multiselect(key="beam_ends").set_value(["#own", "."]).run())
    assert not at.error
    assert searched(at)


def test_a_table_keeps_its_own_end_words():
    at = open_app(
        PAGE, model="toy", prompt="once", lang="en", table="beam_beats_greedy",
        beams="2", max="3", end="#none\nno word of it",
    )  # fmt: skip
    assert not at.multiselect
    assert not at.error
    assert "“<end>”" in words(at).replace("\\", "")
    assert data_of(at, "beam")["ranking"][0]["end"] == "end_token"
    assert query_of(at)["end"] == "#none\nno word of it"


def test_what_is_typed_is_kept_within_a_link():
    at = open_tiny()
    many = [f"#{i}" for i in range(30)]
    healthy(at.multiselect(key="beam_ends").set_value(many).run())
    assert query_of(at)["end"].split("\n") == [*many[:16], "#none"]
    again = open_tiny(end=query_of(at)["end"])
    assert "end" not in (again.info[0].value if again.info else "")
    healthy(at.multiselect(key="beam_ends").set_value(["#own", "x" * 500]).run())
    assert "“" + "x" * 40 + "” is " in at.error[0].value


def test_a_classic_has_its_limit_though_a_link_names_none():
    at = open_app(PAGE, model="toy", prompt="once", lang="en", table="early_stopping", beams="2")
    assert data_of(at, "beam")["limit"] == 5
    assert query_of(at)["max"] == "5"
    healthy(at.number_input(key="beam_max").set_value(24).run())
    assert query_of(at)["max"] == "24"
    again = open_app(PAGE, **query_of(at))
    assert data_of(again, "beam")["limit"] == 24


# --- spoiled links

HOSTILE = {
    "beams": ["0", "-1", "17", "256", "257", "1e3", "", "NaN", "٣", "9" * 5000],
    "alpha": ["inf", "-inf", "nan", "1e999", "11", "-10", "0x1", "", "1,5"],
    "rule": ["", "FULL", "best ", "full\nbest", "<b>"],
    "kind": ["plain", "Sampled", "", "diverse;", "__class__"],
    "groups": ["0", "-3", "256", "300", "2.5", "", "zwei"],
    "diversity": ["-1", "100.1", "nan", "inf", "", "1e400"],
    "nbest": ["-1", "99", "256", "257", "", "all"],
    "node": ["", ":", "1", "1:2:3", "-1:0", "0:-1", "99999999999:0", "a:b", "1048576:1", "2:7"],
    "table": [
        "{", "[]", "null", '"x"', "nowhere", "beam_beats_greedy ", '{"vocab":[]}', "[" * 3000,
        '{"vocab":["a"],"next":{"*":[1e400]}}', '{"vocab":["a"],"next":{"*":[NaN]}}',
        '{"vocab":["a","a"],"next":{"*":[0.5,0.5]}}', '{"vocab":["a"],"end":["b"],"next":{}}',
        '{"vocab":[1],"next":{"*":[1]}}', '{"vocab":["a"],"next":[]}', "\x00",
    ],
    "end": [
        "", "\n\n", "#", "#-1", "#99999999999999999999", "##", "#none\n#none", "#own", "\\",
        "x" * 41, "\n".join(f"#{i}" for i in range(18)), "<img src=x onerror=alert(1)>", "\x00",
        "a b c d e f g h i j k l m n", "$x$", "国", "**b**", "\u202e",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_spoiled_link_is_a_sentence_or_a_default(name):
    """Never an exception; what cannot be read is named, and the page stays usable."""
    kinds = ("diverse",) if name in ("groups", "diversity") else ("",)
    for value in HOSTILE[name]:
        for kind in kinds:
            more = {"kind": kind} if kind else {}
            at = open_tiny(**{**more, name: value})
            told = [*(e.value for e in at.error), *(i.value for i in at.info)]
            assert searched(at) or told, (name, value)
            assert catalog("en")("frame.broken") not in told, (name, value)
            assert all("Traceback" not in text for text in told)
            # A change of a setting is heard.
            healthy(at.number_input(key="beam_max").set_value(2).run())
            assert query_of(at)["max"] == "2"


NOTED = [
    ("beams", "0"), ("beams", "257"), ("alpha", "nan"), ("alpha", "11"), ("rule", "FULL"),
    ("kind", "plain"), ("groups", "0"), ("diversity", "-1"), ("nbest", "257"), ("node", "a:b"),
    ("end", "x" * 41), ("end", "\n".join(f"#{i}" for i in range(18))),
]  # fmt: skip


@pytest.mark.parametrize("lang", LANGS)
def test_what_cannot_be_read_is_named(lang):
    query: dict[str, str] = {}
    for name, value in NOTED:
        query.setdefault(name, value)
    at = open_tiny(lang=lang, **query)
    names = at.info[0].value
    assert all(name in names for name in query)
    data = data_of(at, "beam")
    assert (data["width"], data["alpha"], data["kind"], data["node"]) == (4, 0, "plain", None)
    assert query_of(at).keys().isdisjoint(query)


def test_everything_wrong_at_once():
    for place in range(max(map(len, HOSTILE.values()))):
        query = {name: values[place % len(values)] for name, values in HOSTILE.items()}
        at = open_tiny(**query)
        assert catalog("en")("frame.broken") not in [e.value for e in at.error]
        assert searched(at) or at.error


def test_a_table_in_a_link_is_read_as_it_is():
    table = json.dumps({"vocab": ["a", "b"], "end": ["b"], "next": {"*": [0.5, 0.5]}})
    at = open_tiny(table=table, node="0:1", kind="diverse", groups="3", beams="6", diversity="100")
    data = data_of(at, "beam")
    assert data["kind"] == "diverse"
    assert data["node"] == [0, 1]


@pytest.mark.parametrize("lang", LANGS)
def test_groups_that_find_the_same_text_say_so(lang):
    t = catalog(lang)
    query = {"table": "beam_beats_greedy", "beams": "4", "kind": "diverse", "groups": "2"}
    at = open_tiny(**query, lang=lang, max="3", diversity="0")
    texts = [row["text"] for row in data_of(at, "beam")["ranking"]]
    assert len(texts) == 4
    assert len(set(texts)) == 2
    said = t("beam_search.twins", ranks="1, 2, 3, 4", different=2, n=4)
    assert said in words(at)
    healthy(at.segmented_control(key="beam_kind").set_value("plain").run())
    assert said not in words(at)
    assert t("beam_search.players") in words(at)
