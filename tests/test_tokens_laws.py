"""What holds for every text and every list of ids."""

import itertools

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from core.text.reader import repair
from core.visible import visible
from tests.vocabularies import byte_level, sentencepiece, smollm2

AWKWARD = (
    *(
        "国",
        "é",
        "e\u0301",
        "👨\u200d👩\u200d👧\u200d👦",
        "🇫🇷",
        "👍🏽",
        "مرحبا",
        "क्षत्रिय",
        "ᄀ",
        "ᅡ",
    ),
    *("\0", "\r", "\n", "\t", " ", "  ", "\u202e", "\u200d", "\ufeff", "\ud800", "\U00050000"),
    *("<|im_end|>", "<|im_start|>", "<|endoftext|>", "the", " the", "\ufffd", "▁", "12"),
)
texts = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(AWKWARD), max_size=12).map("".join),
    st.lists(st.characters(codec=None), max_size=12).map("".join),
)


def id_lists(vocabulary):
    return st.lists(st.integers(0, vocabulary.size - 1), max_size=16)


def check_reading(vocabulary, text, literal):
    """Bytes join back; the library's own encoder and decoder agree."""
    encoded = vocabulary.encode(text, literal=literal)
    tokens = vocabulary.tokens(encoded.ids, 0)
    assert b"".join(t.bytes for t in tokens) == encoded.text.encode()
    assert vocabulary.text(encoded.ids) == encoded.text
    if not {"character_unreadable", "text_changed"} & set(encoded.notes):
        assert encoded.text == repair(text)
    library = vocabulary._entries.tokenizer
    assert library.decode(list(encoded.ids), skip_special_tokens=False) == encoded.text
    if literal:
        assert not any(t.special for t in tokens)
    else:
        assert list(encoded.ids) == library.encode(encoded.text).ids
        spans = vocabulary.control_spans(encoded.text)
        assert [t.span for t in tokens if t.special] == [(c.start, c.stop) for c in spans]
        assert [encoded.text[c.start : c.stop] for c in spans] == [
            t.label for t in tokens if t.special
        ]
        assert ("control_in_prompt" in encoded.notes) == bool(spans)


def check_groups(vocabulary, ids):
    """Groups tile the positions, spans tile the text, and a group is whole characters."""
    tokens = vocabulary.tokens(ids, len(ids))
    text = vocabulary.text(ids)
    groups = list(dict.fromkeys((t.group, t.span) for t in tokens))
    assert [t.position for t in tokens] == list(range(len(ids)))
    assert all(start <= t.position < stop for t in tokens for start, stop in [t.group])
    ends = [0, *(group[1] for group, _ in groups)]
    assert [group for group, _ in groups] == list(itertools.pairwise(ends))
    cuts = [0, *(span[1] for _, span in groups)]
    assert [span for _, span in groups] == list(itertools.pairwise(cuts))
    assert cuts[-1] == len(text)
    offset = 0
    for special, part in itertools.groupby(tokens, lambda t: t.special):
        run = list(part)
        stop = run[-1].span[1]
        if not special:
            starts = (m.start() for m in regex.finditer(r"\X", text[offset:stop]))
            borders = {offset + start for start in starts} | {stop}
            assert {t.span[0] for t in run} <= borders
            for t in run:
                if t.group[1] - t.group[0] > 1 and t.span[0] + 1 < t.span[1]:
                    check_necessary(vocabulary, [ids[i] for i in range(*t.group)])
        offset = stop


def check_necessary(vocabulary, ids):
    """No border between tokens of a group is also a border between characters."""
    whole = b"".join(vocabulary.bytes_of(id) for id in ids)
    text = whole.decode(errors="replace")
    if text.encode() != whole:
        return
    starts = {len(text[: m.start()].encode()) for m in regex.finditer(r"\X", text)}
    inner = itertools.accumulate(len(vocabulary.bytes_of(id)) for id in ids[:-1])
    assert not starts & set(inner)


def check_streaming(vocabulary, ids):
    for skip in (False, True):
        whole = vocabulary.text(ids, skip)
        shown = ""
        for count in range(len(ids) + 1):
            settled = vocabulary.settled(ids[:count], skip)
            now = vocabulary.text(ids[:count], skip)
            assert settled.startswith(shown), "what was shown never changes"
            assert whole.startswith(settled)
            assert now.startswith(settled)
            assert now[len(settled) :] in ("", "\ufffd"), "only one unfinished character"
            shown = settled


def check_library_decodes_the_same(vocabulary, ids):
    library = vocabulary._entries.tokenizer
    for skip in (False, True):
        known = [id for id in ids if id not in vocabulary.unused]
        assert vocabulary.text(known, skip) == library.decode(known, skip_special_tokens=skip)


@given(texts, st.booleans())
def test_reading(text, literal):
    check_reading(byte_level(), text, literal)


@given(texts)
def test_groups_of_a_text(text):
    check_groups(byte_level(), byte_level().encode(text).ids)


@given(id_lists(byte_level()))
def test_any_ids(ids):
    check_groups(byte_level(), ids)
    check_streaming(byte_level(), ids)
    check_library_decodes_the_same(byte_level(), ids)


@given(id_lists(sentencepiece()))
def test_any_ids_of_sentencepiece(ids):
    check_groups(sentencepiece(), ids)
    check_streaming(sentencepiece(), ids)


@pytest.mark.model
@given(text=texts, literal=st.booleans())
def test_reading_with_the_default_model(default_model, text, literal):
    check_reading(smollm2(), text, literal)
    check_groups(smollm2(), smollm2().encode(text, literal=literal).ids)


@pytest.mark.model
@given(data=st.data())
def test_any_ids_of_the_default_model(default_model, data):
    ids = data.draw(id_lists(smollm2()))
    check_groups(smollm2(), ids)
    check_streaming(smollm2(), ids)
    check_library_decodes_the_same(smollm2(), ids)


# --- visible text

NASTY = st.text(alphabet="a ␣\n↵‹›U+02D\u200d\u202e\0␀\u0301◌👩️", max_size=8)
UNSEEN = regex.compile(r"[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]")


@given(texts)
def test_nothing_unseen_is_left(text):
    shown = visible(text)
    assert not UNSEEN.search(shown)
    assert not regex.match(r"\p{M}", shown)
    assert bool(shown) == bool(text)


@given(texts)
# a reserved place for an emoji that no font can draw yet
@example("\U0001f1af")
def test_whole_characters_hold_only_harmless_joiners(text):
    allowed = r"[\u200c\u200d\ufe0f\U000E0020-\U000E007F]"
    left = UNSEEN.findall(visible(text, whole=True))
    assert all(regex.fullmatch(allowed, char) for char in left)


@given(NASTY, NASTY)
def test_different_texts_look_different(one, other):
    assert (visible(one) == visible(other)) == (one == other)
