"""Both languages say the same things, and every message that the code asks for exists.

That no sentence stands in the code itself is checked in test_architecture.
"""

import ast
import re
import string
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.faults import Fault
from ui.i18n import HTML_LANG, LANGUAGES, LOCALES, bound, catalog, guess, plain

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "lessons"
AREAS = sorted(path.stem for path in (LOCALES / "en").glob("*.toml"))
SOURCES = sorted(
    path
    for top in ("core", "ui", "pages", "app.py")
    for path in ([ROOT / top] if top.endswith(".py") else (ROOT / top).rglob("*.py"))
    if path.is_file()
)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


# --- the catalogues


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_language_has_the_same_areas(lang):
    assert sorted(path.stem for path in (LOCALES / lang).glob("*.toml")) == AREAS
    assert lang in HTML_LANG


@pytest.mark.parametrize("area", AREAS)
def test_an_area_says_the_same_in_both_languages(area):
    tables = {
        lang: tomllib.loads((LOCALES / lang / f"{area}.toml").read_text(encoding="utf-8"))
        for lang in LANGUAGES
    }
    english, chinese = tables["en"], tables["zh"]
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        # what joins two sentences is a space in English and nothing in Chinese
        assert key.endswith("_join") or min(len(text.strip()), len(chinese[key].strip())) > 0, key
        assert placeholders(text) == placeholders(chinese[key]), f"{area}.{key}"


def test_no_probability_is_called_by_another_name():
    wrong = re.compile("confiden|certainty|置信|信心", re.IGNORECASE)
    files = [*LOCALES.rglob("*.toml"), *LESSONS.rglob("*.md")]
    assert [str(f) for f in files if wrong.search(f.read_text(encoding="utf-8"))] == []


def test_chinese_has_chinese_punctuation():
    half = re.compile(r"[\u4e00-\u9fff] ?(?:[,;!?](?=\s|[\u4e00-\u9fff]|$)|:(?=\s|$))")
    for path in [*(LOCALES / "zh").glob("*.toml"), *(LESSONS / "zh").glob("*.md")]:
        assert half.findall(path.read_text(encoding="utf-8")) == [], path.name


def test_chinese_readers_are_addressed_in_one_way():
    for path in [*(LOCALES / "zh").glob("*.toml"), *(LESSONS / "zh").glob("*.md")]:
        assert "您" not in path.read_text(encoding="utf-8"), path.name


def test_faults_are_sentences():
    for lang, end in (("en", "."), ("zh", "。")):
        for code, text in catalog(lang).area("fault").items():
            assert text.endswith(end), f"{lang}: {code}"


def test_lessons_come_in_both_languages():
    names = {lang: {p.name for p in (LESSONS / lang).glob("*.md")} for lang in LANGUAGES}
    assert names["en"] == names["zh"] != set()


def test_notes_are_those_that_a_reader_makes():
    made = {
        node.value
        for name in ("core/text/reader.py", "core/tokens.py", "core/engine/toy_words.py")
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in catalog("en").area("notes")
    }
    assert made == set(catalog("en").area("notes"))


# --- the lookup


def test_an_unknown_language_reads_english():
    assert catalog("xx") == catalog("en")
    assert catalog("../zh").lang == "en"


def test_placeholders_are_filled_and_faults_are_translated():
    fault = Fault("unknown_token", id=7, limit=5)
    assert catalog("en").fault(fault) == str(fault)
    assert "7" in catalog("zh").fault(fault)
    assert catalog("zh").fault(fault) != str(fault)


@pytest.mark.parametrize(
    ("locale", "lang"),
    [("zh-CN", "zh"), ("zh", "zh"), ("ZH-tw", "zh"), ("en-GB", "en"), ("fr", "en"), (None, "en")],
)
def test_the_first_language_is_the_browser_s(locale, lang):
    assert guess(locale) == lang


# --- what the code asks for


@dataclass(frozen=True)
class Ask:
    """A call that names a message; ``id`` is a pattern, since f-strings leave gaps."""

    where: str
    id: str
    given: frozenset[str] | None
    """Keywords of the call; ``None`` where a ``**`` hides them."""


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def pattern(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            re.escape(part.value) if isinstance(part, ast.Constant) else ".+"
            for part in node.values
        )
    return None


def asks(names: set[str]) -> Iterator[Ask]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and called(node) in names and node.args):
                continue
            id = pattern(node.args[0])
            if id is not None:
                words = {k.arg for k in node.keywords}
                given = None if None in words else frozenset(w for w in words if w)
                yield Ask(f"{path.relative_to(ROOT)}:{node.lineno}", id, given)


def complaints(ask: Ask, messages: dict[str, str]) -> list[str]:
    found = [key for key in messages if re.fullmatch(ask.id, key)]
    if not found:
        return [f"{ask.where}: no message {ask.id}"]
    if len(found) > 1 or ask.given is None:
        return []
    missing = placeholders(messages[found[0]]) - ask.given
    return [f"{ask.where}: {found[0]} needs {sorted(missing)}"] if missing else []


def test_every_message_asked_for_exists_and_gets_its_values():
    messages = catalog("en").messages
    wrong = [text for ask in asks({"t"}) for text in complaints(ask, messages)]
    assert wrong == []


def test_every_area_asked_for_exists():
    areas = list(asks({"area"}))
    assert areas
    assert [a for a in areas if not any(re.fullmatch(a.id, area) for area in AREAS)] == []


def test_every_fault_has_its_sentence_and_values():
    sentences = catalog("en").area("fault")
    found = list(asks({"Fault", "NotReady"}))
    assert len(found) > 20
    assert [text for ask in found for text in complaints(ask, sentences)] == []


def test_no_sentence_is_left_over_from_a_fault_that_is_gone():
    strings = {
        node.value
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(catalog("en").area("fault")) - strings == set()


def test_the_scan_finds_what_is_wrong():
    asked = Ask("x.py:1", re.escape("home.nothing"), frozenset())
    assert complaints(asked, {"home.title": "T"}) == [r"x.py:1: no message home\.nothing"]
    asked = Ask("x.py:2", re.escape("home.title"), frozenset({"a"}))
    assert complaints(asked, {"home.title": "{a} {b}"}) == ["x.py:2: home.title needs ['b']"]
    asked = Ask("x.py:3", r"home\..+_help", None)
    assert complaints(asked, {"home.top_help": "{a}"}) == []


HOSTILE = "![i](http://example.org/x.png) [l](javascript:x) :red[r] $x$ **b** `c` <b> ~s~"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_was_typed_stays_text_in_a_sentence(lang):
    for code in ("unknown_model", "no_toy_file", "typed_item", "typed_negative"):
        names = placeholders(catalog(lang).messages[f"fault.{code}"])
        said = catalog(lang).fault(Fault(code, **dict.fromkeys(names, HOSTILE)))
        assert plain(HOSTILE) in said
        assert not re.search(r"(?<!\\)[\[\]$*`<~]", said), said


def test_a_sentence_stays_short_whatever_was_typed():
    for value in ("x" * 10**6, [0] * 10**6, 10**4000, 10**5000):
        assert len(str(Fault("toy_end", value=value))) < 400


def test_a_number_and_its_unit_stay_on_one_line():
    assert (
        bound("50 % of 25 GB in 1.5 ms, 3 steps")
        == "50\u00a0% of 25\u00a0GB in 1.5\u00a0ms, 3 steps"
    )
    assert bound("35.4 M FLOPs, {n} × 2") == "35.4\u00a0M\u00a0FLOPs, {n}\u00a0× 2"
    assert bound("落选 4 个，共 {n} 个") == "落选 4\u00a0个，共 {n}\u00a0个"
    assert bound(bound("35.4 M FLOPs")) == bound("35.4 M FLOPs")
    assert catalog("en")("lab.running", percent="50 %") == "Running … 50\u00a0%"
