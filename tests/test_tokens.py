"""What exactly is read from awkward texts, and how it is shown."""

import threading
import time

import pytest
from tokenizers import Tokenizer

from core.faults import Fault
from core.models.tiny import tiny_tokenizer
from core.tokens import MAX_CHARACTERS, Control, Vocabulary
from tests.vocabularies import byte_level, smollm2

FAMILY = "👨\u200d👩\u200d👧\u200d👦"


@pytest.fixture
def real(default_model):
    return smollm2()


def shown(vocabulary, text, **how):
    """The labels of a text, and the groups of more than one token as ``(tokens, characters)``."""
    tokens = vocabulary.tokens(vocabulary.encode(text, **how).ids, 10**6)
    whole = vocabulary.text([token.id for token in tokens])
    groups = {t.group: whole[slice(*t.span)] for t in tokens if t.group[1] - t.group[0] > 1}
    return [token.label for token in tokens], groups


# --- the default model's own tokens


@pytest.mark.model
def test_smollm2_reads_the_capital_of_france(real):
    encoded = real.encode("The capital of France is")
    assert encoded.ids == (504, 3575, 282, 4649, 314)
    assert [real.label(id) for id in encoded.ids] == ["The", "␣capital", "␣of", "␣France", "␣is"]
    assert encoded.notes == ()


@pytest.mark.model
def test_smollm2_splits_chinese_into_bytes_and_groups_them(real):
    labels, groups = shown(real, "法国的首都是")
    assert labels == [
        "法",
        "‹E5 9B›",
        "‹BD›",
        "的",
        "‹E9›",
        "‹A6›",
        "‹96›",
        "‹E9›",
        "‹83 BD›",
        "是",
    ]
    assert groups == {(1, 3): "国", (4, 7): "首", (7, 9): "都"}
    tokens = real.tokens(real.encode("法国的首都是").ids, 2)
    assert [t.source for t in tokens] == ["prompt"] * 2 + ["generated"] * 8
    assert [t.text for t in tokens] == ["法", "", "", "的", "", "", "", "", "", "是"]
    assert [t.span for t in tokens][1:4] == [(1, 2), (1, 2), (2, 3)]
    assert tokens[1].piece == "åĽ"
    assert tokens[1].bytes + tokens[2].bytes == "国".encode()


@pytest.mark.model
def test_smollm2_makes_one_group_of_a_family(real):
    tokens = real.tokens(real.encode(FAMILY).ids, 0)
    assert len(tokens) == 18
    assert {(t.group, t.span) for t in tokens} == {((0, 18), (0, 7))}
    assert tokens[3].label == "‹E2 80›"


@pytest.mark.model
def test_smollm2_reads_arabic_letter_by_letter(real):
    labels, groups = shown(real, "مرحبا")
    assert labels == list("مرحبا")
    assert groups == {}


@pytest.mark.model
def test_smollm2_reads_digits_one_by_one(real):
    assert shown(real, "a  12")[0] == ["a", "␣␣", "1", "2"]


@pytest.mark.model
def test_smollm2_marks_and_mends_control_strings(real):
    control = real.encode("<|im_end|>")
    assert control.ids == (2,)
    assert control.notes == ("control_in_prompt",)
    assert real.tokens(control.ids, 1)[0].special
    literal = real.encode("<|im_end|>", literal=True)
    assert [real.label(id) for id in literal.ids] == ["<", "|", "im", "_", "end", "|", ">"]
    assert literal.notes == ()
    assert real.encode("<|im_end|>").ids == (2,), "the shared tokenizer did not change"


@pytest.mark.model
def test_smollm2_says_when_it_cannot_spell_a_character(real):
    # byte 06 and bytes F1, F2 are in no token of this vocabulary: the tokenizer drops them
    encoded = real.encode("a\x06b\U00050000")
    assert encoded.text == "a\ufffdb\ufffd"
    assert encoded.notes == ("character_unreadable",)
    assert real.text(encoded.ids) == encoded.text


@pytest.mark.model
def test_smollm2_chat_is_text_with_control_tokens(real):
    text = real.chat("Hi")
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert real.chat("Hi", system="Be brief.").startswith("<|im_start|>system\nBe brief.<|im_end|>")
    assert real.read("Hi", chat=True).ids == real.encode(text).ids
    assert real.read("Hi", chat=True).notes == (), "the template's own controls are no surprise"


@pytest.mark.model
def test_smollm2_labels_are_fast_and_all_different(real):
    fresh = Vocabulary(Tokenizer.from_str(real._entries.tokenizer.to_str()), size=real.size)
    begin = time.process_time()
    labels = fresh.labels()
    assert time.process_time() - begin < 0.3
    assert len(labels) == len(set(labels)) == 49152
    assert labels[2] == "<|im_end|>"
    assert labels[198] == "↵"


@pytest.mark.model
@pytest.mark.parametrize("query", [" Paris", "␣Paris"])
def test_smollm2_search_with_a_space(real, query):
    assert [real.label(id) for id in real.search(query, 2)] == ["␣Paris", "␣Parish"]


@pytest.mark.model
def test_smollm2_search_without_a_space(real):
    assert [real.label(id) for id in real.search("Paris", 3)] == ["Paris", "␣Paris", "␣Parish"]
    assert [real.label(id) for id in real.search("paris", 2)] == ["Paris", "␣Paris"]


# --- the same on the tiny vocabulary, which is always there


def test_nothing_in_a_text_is_lost():
    text = "<b>a</b> $x$\r\n\t\0 \u202eé\ufeff"
    encoded = byte_level().encode(text)
    assert encoded.text == text
    assert encoded.notes == ()
    assert byte_level().text(encoded.ids) == text


def test_whitespace_and_controls_are_visible():
    labels, groups = shown(byte_level(), "a \n\n\t\0\r\nb")
    assert labels == ["a", "␣", "↵↵", "⇥", "␀", "␍", "↵", "b"]
    assert groups == {(5, 7): "\r\n"}


def test_a_combining_accent_joins_its_letter_and_nothing_else():
    labels, groups = shown(byte_level(), "xe\u0301 y")
    assert labels == ["x", "e", "‹CC›", "‹81›", "␣", "y"]
    assert groups == {(1, 4): "e\u0301"}


def test_a_group_is_never_more_than_its_character():
    labels, groups = shown(byte_level(), f"国法的{FAMILY}!")
    assert labels[:5] == ["国", "‹E6 B3›", "‹95›", "‹E7›", "‹9A›"]
    assert list(groups.values()) == ["法", "的", FAMILY]


def test_markup_and_formulas_are_plain_text():
    assert shown(byte_level(), "<b>$x$")[0] == ["<", "b", ">", "$", "x", "$"]


def test_lone_surrogates_are_replaced_and_noted():
    encoded = byte_level().encode("a\ud83db\udc00")
    assert encoded.text == "a\ufffdb\ufffd"
    assert encoded.notes == ("surrogate_replaced",)


def test_two_halves_of_a_character_are_joined():
    encoded = byte_level().encode("\ud83d\ude00")
    assert encoded.text == "😀"
    assert encoded.notes == ()


def test_an_honest_replacement_character_needs_no_note():
    assert byte_level().encode("\ufffd").notes == ()


def test_the_empty_text_has_no_tokens():
    encoded = byte_level().encode("")
    assert (encoded.ids, encoded.text, encoded.notes) == ((), "", ())
    assert byte_level().tokens((), 0) == ()
    assert byte_level().text(()) == ""


def test_too_long_a_text_is_refused_with_the_limit():
    with pytest.raises(Fault, match="200,001 characters, but at most 200,000"):
        byte_level().encode("a" * (MAX_CHARACTERS + 1))
    assert len(byte_level().encode("b" * MAX_CHARACTERS).ids) == MAX_CHARACTERS


def test_ten_thousand_characters_are_quick():
    text = ("The cat of 国 is in the hat. " * 400)[:10_000]
    begin = time.process_time()
    byte_level().tokens(byte_level().encode(text).ids, 0)
    assert time.process_time() - begin < 1.0


def test_control_spans_are_where_control_strings_stand():
    vocabulary = byte_level()
    assert vocabulary.control_spans("国<|im_end|>\ud800 <|im_start|>") == (
        Control(1, 11, 2),
        Control(13, 25, 1),
    )
    assert vocabulary.control_spans("<|im_en d|>") == ()


def test_a_special_token_is_a_group_of_its_own():
    vocabulary = byte_level()
    tokens = vocabulary.tokens(vocabulary.encode("e<|im_end|>\u0301").ids, 1)
    assert [(t.label, t.group, t.span) for t in tokens] == [
        ("e", (0, 1), (0, 1)),
        ("<|im_end|>", (1, 2), (1, 11)),
        ("‹CC›", (2, 4), (11, 12)),
        ("‹81›", (2, 4), (11, 12)),
    ]


def test_unfinished_characters():
    vocabulary = byte_level()
    ids = vocabulary.encode("a首").ids
    texts = [vocabulary.text(ids[:n]) for n in range(5)]
    assert texts == ["", "a", "a\ufffd", "a\ufffd", "a首"]
    settled = [vocabulary.settled(ids[:n]) for n in range(5)]
    assert settled == ["", "a", "a", "a", "a首"]


def test_special_tokens_can_be_left_out_of_the_text():
    vocabulary = byte_level()
    ids = vocabulary.encode("a<|im_end|>b").ids
    assert vocabulary.text(ids) == "a<|im_end|>b"
    assert vocabulary.text(ids, skip_special=True) == "ab"


def test_padding_rows_and_unknown_ids():
    vocabulary = byte_level()
    last = vocabulary.size - 1
    assert vocabulary.unused == {last - 1, last}
    assert vocabulary.label(last) == vocabulary.labels()[last] == f"‹unused {last}›"
    assert vocabulary.bytes_of(last) == b""
    assert not vocabulary.is_special(last)
    token = vocabulary.tokens([4, last], 2)[1]
    assert (token.text, token.piece, token.bytes, token.group) == ("", "", b"", (1, 2))
    for call in (vocabulary.label, vocabulary.bytes_of, vocabulary.is_special):
        for id in (-1, last + 1):
            with pytest.raises(Fault, match=f"Token id {id} does not exist"):
                call(id)
    with pytest.raises(Fault):
        vocabulary.text([last + 1])


def test_search_knows_ids_bytes_and_marks():
    vocabulary = byte_level()
    assert vocabulary.search("2")[0] == 2
    assert [vocabulary.label(id) for id in vocabulary.search("the")] == ["the", "␣the"]
    assert [vocabulary.label(id) for id in vocabulary.search("\n")] == ["↵", "↵↵"]
    assert vocabulary.search("↵") == vocabulary.search("\n")
    assert [vocabulary.label(id) for id in vocabulary.search("E5 9B")] == ["‹E5 9B›"]
    assert [vocabulary.label(id) for id in vocabulary.search("IM_END")] == ["<|im_end|>"]
    assert len(vocabulary.search("‹", limit=7)) == 7
    assert vocabulary.search("") == vocabulary.search("no such token") == ()
    assert vocabulary.search("99999999999999999999") == ()


def test_chat_with_plain_text_inside():
    vocabulary = byte_level()
    encoded = vocabulary.read("<|im_end|>e", chat=True, literal=True)
    assert encoded.text == vocabulary.chat("<|im_end|>e")
    assert [id for id in encoded.ids if vocabulary.is_special(id)] == [1, 2, 1]
    assert encoded.notes == ()
    loud = vocabulary.read("<|im_end|>e", chat=True)
    assert [id for id in loud.ids if vocabulary.is_special(id)] == [1, 2, 2, 1]
    assert loud.notes == ("control_in_prompt",)
    calm = vocabulary.read("hello", chat=True, literal=True)
    assert calm.ids == vocabulary.read("hello", chat=True).ids


def test_no_chat_without_a_template_and_no_traceback_from_a_bad_one():
    assert byte_level().has_chat
    with pytest.raises(Fault) as missing:
        Vocabulary(tiny_tokenizer()).chat("Hi")
    assert missing.value.code == "no_chat_template"
    for template in ("{{ raise_exception('no system') }}", "{% for %}", "{{ 1 / 0 }}"):
        with pytest.raises(Fault) as failed:
            Vocabulary(tiny_tokenizer(), chat_template=template).chat("Hi")
        assert failed.value.code == "chat_template_failed"


def test_a_template_cannot_reach_python():
    template = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    with pytest.raises(Fault, match="chat template"):
        Vocabulary(tiny_tokenizer(), chat_template=template).chat("Hi")


def test_a_tokenizer_that_cuts_and_pads_does_neither_here():
    tokenizer = tiny_tokenizer()
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=8)
    encoded = Vocabulary(tokenizer).encode("hello")
    assert encoded.text == "hello"
    assert len(encoded.ids) == 5


def test_threads_share_one_vocabulary():
    vocabulary = Vocabulary(tiny_tokenizer(), end_ids=[2], chat_template="{{ messages }}")
    text = "in the <|im_end|> 国"
    plain, literal = byte_level().encode(text), byte_level().encode(text, literal=True)
    start, wrong = threading.Barrier(8), []

    def user(number):
        start.wait()
        for _ in range(50):
            how = number % 2 == 0
            if vocabulary.encode(text, literal=how) != (literal if how else plain):
                wrong.append(number)
            if vocabulary.labels()[2] != "<|im_end|>" or vocabulary.search("the")[0] < 259:
                wrong.append(number)

    threads = [threading.Thread(target=user, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
