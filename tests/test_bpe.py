"""The merges played again: what they show, and that they end where the tokenizer does."""

import itertools
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE, Unigram, WordLevel, WordPiece

from core.bpe import best_path, cut, replay, rules_of, story
from core.faults import Fault
from core.models.catalog import resolve
from core.models.tiny_text import CHAT_TEMPLATE, tiny_tokenizer
from core.text.opened import open_vocabulary
from core.tokens import Vocabulary
from tests.test_tokens_laws import AWKWARD
from tests.vocabularies import byte_level, sentencepiece

MIXED = (
    "The capital of France is 国, 2024年の夏! naïve café  two  spaces\n\n\tTab\r\n"
    "مرحبا بالعالم שלום क्षत्रिय สวัสดี 한국어 Ελληνικά 👨\u200d👩\u200d👧\u200d👦 🇫🇷 x²+y²=∞ "
    "<|im_end|> <bos> <0xE5> ▁▁ \u00a0\u200b\ufeff antidisestablishmentarianism a\u0301 ﬁ"
)
texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from((*AWKWARD, *MIXED.split(" "))), max_size=14).map(" ".join),
    st.text(st.sampled_from("the of in an ac国河ab\n 12"), max_size=60),
)


@cache
def real(name):
    return open_vocabulary(resolve(name))


@cache
def rules(vocabulary):
    return rules_of(vocabulary.tokenizer)


def check(vocabulary, text, *, literal=False, chat=False, most=None):
    """The law: words tile the tokens, and each word's replay ends in its tokens."""
    made = cut(vocabulary, text, literal=literal, chat=chat)
    ids = vocabulary.read(text, literal=literal, chat=chat).ids
    closing = vocabulary.frame[1]
    end = len(made.opening)
    for word in made.words:
        assert word.positions == (end, end + len(word.ids))
        assert word.ids == ids[word.positions[0] : word.positions[1]]
        assert made.text[slice(*word.span)] == word.text
        end = word.positions[1]
        told = story(rules(vocabulary), word, most=most)
        assert told.why_not in (None, "added"), (told, text)
        assert told.ids == word.ids[: len(told.ids)]
        assert told.ids == word.ids or told.capped
        if told.replay is not None:
            assert_steps(told.replay)
    assert end == len(ids) - closing
    return made


def assert_steps(made):
    """Each merge takes the best of the pairs that stand there, and nothing else changes."""
    symbols = list(made.start)
    for merge in made.merges:
        assert merge.won == merge.pairs[0]
        order = [(pair.rank, pair.at) for pair in merge.pairs]
        assert order == sorted(order)
        for pair in merge.pairs:
            assert symbols[pair.at : pair.at + 2] == [pair.left, pair.right]
        at = merge.won.at
        symbols[at : at + 2] = [merge.won.result]
    assert tuple(symbols) == made.ids


@given(texts, st.booleans())
def test_the_tiny_tokenizer(text, literal):
    check(byte_level(), text, literal=literal)


@given(texts, st.booleans(), st.booleans())
def test_sentencepiece_like_tokenizers(text, prefixed, literal):
    check(spaced(prefixed), text, literal=literal)


@cache
def spaced(prefixed):
    return sentencepiece(prefixed=prefixed)


@pytest.mark.model
@settings(max_examples=60)
@given(texts, st.booleans())
def test_smollm2_and_its_digits(default_model, text, literal):
    check(real(default_model), text, literal=literal)


@pytest.mark.model
@settings(max_examples=60)
@given(texts, st.booleans())
def test_gemma3_with_bytes_and_newlines(gemma3_name, text, literal):
    check(real(gemma3_name), text, literal=literal)


@pytest.mark.model
@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("most", [None, 20])
def test_mixed_scripts_with_the_real_tokenizers(default_model, gemma3_name, literal, most):
    for name in (default_model, gemma3_name):
        made = check(real(name), MIXED, literal=literal, most=most)
        assert len(made.words) > 20


@pytest.mark.model
def test_a_chat_is_cut_like_any_text(default_model):
    vocabulary = real(default_model)
    for literal in (False, True):
        made = check(vocabulary, "Hi <|im_end|> 42", chat=True, literal=literal)
        first = made.words[0]
        assert (first.text, first.added, first.positions) == ("<|im_start|>", True, (0, 1))
        ends = [word.added for word in made.words if word.text == "<|im_end|>"]
        assert ends[-1] is True
        assert (len(ends) == 3) is not literal


def test_the_merges_of_a_word_by_hand():
    vocabulary = byte_level()
    made = cut(vocabulary, "in the")
    assert [word.normal for word in made.words] == ["in", "Ġthe"]
    assert [word.positions for word in made.words] == [(0, 1), (1, 2)]
    assert made.normal == "in the"
    found = replay(rules(vocabulary), "Ġthe")
    piece = vocabulary.tokenizer.id_to_token
    assert [piece(id) for id in found.start] == ["Ġ", "t", "h", "e"]
    played = [
        [(piece(p.left), piece(p.right), p.rank, p.at) for p in merge.pairs]
        for merge in found.merges
    ]
    # "t h" (rank 0) beats "Ġ t" (rank 2); then "th e" (rank 1); then "Ġ the" (rank 3)
    assert played == [
        [("t", "h", 0, 1), ("Ġ", "t", 2, 0)],
        [("th", "e", 1, 1)],
        [("Ġ", "the", 3, 0)],
    ]
    assert [piece(id) for id in found.ids] == ["Ġthe"]
    assert rules(vocabulary).merges == 19


def test_the_leftmost_of_equal_pairs_wins():
    found = replay(rules(byte_level()), "inin")
    assert [merge.won.at for merge in found.merges] == [0, 1]
    assert [pair.at for pair in found.merges[0].pairs] == [0, 2]


def test_a_character_of_several_bytes_is_made_of_them():
    vocabulary = byte_level()
    found = replay(rules(vocabulary), cut(vocabulary, "国").words[0].normal)
    assert [vocabulary.bytes_of(id) for id in found.start] == [b"\xe5", b"\x9b", b"\xbd"]
    assert [vocabulary.bytes_of(id) for id in found.ids] == ["国".encode()]


def test_a_word_with_spaces_is_cut_where_its_tokens_begin_with_one():
    made = cut(sentencepiece(), "hi a hi")
    assert [(word.text, word.normal, word.whole) for word in made.words] == [
        ("hi", "hi", False),
        (" a", "▁a", False),
        (" hi", "▁hi", False),
    ]
    assert made.normal == "hi▁a▁hi"
    assert (made.normalizer, made.pre_tokenizer) == (("Replace",), ())
    assert made.opening == (0,)
    assert made.word_at(0) is None
    assert made.word_at(2) == 1


@pytest.mark.model
def test_a_chinese_text_is_cut_at_its_punctuation(gemma3_name):
    made = check(real(gemma3_name), "国王是谁？我不知道，真的。 Yes, it's me.")
    assert [word.text for word in made.words] == [
        *("国王是谁？", "我不知道，", "真的。", " Yes,", " it's", " me.")
    ]


def test_a_long_word_is_told_to_a_border_between_tokens():
    vocabulary = byte_level()
    word = cut(vocabulary, "in" * 300).words[0]
    told = story(rules(vocabulary), word, most=97)
    assert (len(told.told), told.capped) == (96, True)
    assert told.ids == word.ids[:48]
    assert len(told.replay.merges) == 48


def bpe(**options):
    pieces = ["<unk>", "a", "b", "c", "ab", "abc", *(f"<0x{n:02X}>" for n in range(256))]
    model = BPE({p: i for i, p in enumerate(pieces)}, [("a", "b"), ("ab", "c")], **options)
    return Vocabulary(Tokenizer(model))


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("text", ["abc", "ab!c", "!!?ab", "国ab", "a国国b", "!"])
def test_characters_without_an_entry(fuse, fallback, text):
    vocabulary = bpe(unk_token="<unk>", fuse_unk=fuse, byte_fallback=fallback)
    found = replay(rules(vocabulary), text)
    assert list(found.ids) == vocabulary.tokenizer.encode(text).ids


def test_a_word_that_is_an_entry_is_taken_at_once_where_merges_are_ignored():
    pieces = {"a": 0, "b": 1, "ab": 2, "bab": 3}
    vocabulary = Vocabulary(Tokenizer(BPE(pieces, [("a", "b")], ignore_merges=True)))
    assert vocabulary.tokenizer.encode("bab").ids == [3]
    found = replay(rules(vocabulary), "bab")
    assert (found.ids, found.merges, found.whole) == ((3,), (), True)
    assert replay(rules(vocabulary), "bb").ids == (1, 1)


def test_prefixes_and_suffixes_of_words():
    pieces = ["a", "##a", "##a</w>", "##aa", "a</w>", "a##"]
    model = BPE(
        {p: i for i, p in enumerate([*pieces, "##aa</w>"])},
        [("##a", "##a</w>")],
        continuing_subword_prefix="##",
        end_of_word_suffix="</w>",
    )
    vocabulary = Vocabulary(Tokenizer(model))
    for text in ("a", "aa", "aaa", "aaaa"):
        found = replay(rules(vocabulary), text)
        assert list(found.ids) == vocabulary.tokenizer.encode(text).ids, text


def test_dropout_is_not_told_as_if_it_were_certain():
    vocabulary = bpe(dropout=0.5)
    word = cut(vocabulary, "c").words[0]
    assert story(rules(vocabulary), word).why_not == "dropout"


def test_added_entries_are_found_first():
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken("the of", normalized=False)])
    made = check(Vocabulary(tokenizer), "in the of the")
    assert [(word.text, word.added) for word in made.words] == [
        ("in", False),
        (" ", False),
        ("the of", True),
        (" the", False),
    ]


@pytest.mark.parametrize(
    "normalizer",
    [normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip(), normalizers.Prepend("a")],
)
def test_a_text_that_is_normalised_keeps_its_places(normalizer):
    tokenizer = tiny_tokenizer()
    tokenizer.normalizer = normalizer
    made = check(Vocabulary(tokenizer), " The ﬁn OF Ａ² ")
    assert [made.text[slice(*word.span)] for word in made.words] == [w.text for w in made.words]


# --- unigram

PIECES = [("<unk>", 0.0), ("a", -2.0), ("b", -2.5), ("ab", -3.0), ("aba", -6.0), ("ba", -3.5)]


def unigram(**options):
    tokenizer = Tokenizer(Unigram(PIECES, unk_id=0, **options))
    return Vocabulary(tokenizer)


def test_the_best_sum_of_scores_is_taken():
    found = best_path(rules(unigram()), "aba")
    assert found.score == -5.0  # ab + a; a + ba is -5.5, aba alone -6, letter by letter -6.5
    taken = [(piece.start, piece.stop) for piece in found.pieces if piece.on_path]
    assert taken == [(0, 2), (2, 3)]
    assert {(p.start, p.stop, p.score, p.best) for p in found.pieces} == {
        (0, 1, -2.0, -2.0),
        (0, 2, -3.0, -3.0),
        (0, 3, -6.0, -6.0),
        (1, 2, -2.5, -4.5),
        (1, 3, -3.5, -5.5),
        (2, 3, -2.0, -5.0),
    }


@given(st.text(st.sampled_from("ab!国"), max_size=24))
def test_unigram_equals_the_library(text):
    vocabulary = spoken()
    found = best_path(rules(vocabulary), text)
    assert list(found.ids) == [t.id for t in vocabulary.tokenizer.model.tokenize(text)]


@cache
def spoken():
    return unigram()


@given(st.text(st.sampled_from("ab▁!é"), max_size=24))
def test_unigram_with_bytes_equals_the_library(text):
    vocabulary = bytewise()
    found = best_path(rules(vocabulary), text)
    assert list(found.ids) == [t.id for t in vocabulary.tokenizer.model.tokenize(text)]


@cache
def bytewise():
    pieces = [*PIECES, ("▁", -2.2), *((f"<0x{n:02X}>", 0.0) for n in range(256))]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return Vocabulary(tokenizer)


@given(st.text(st.sampled_from("ab é"), max_size=24))
def test_unigram_in_a_whole_text(text):
    check(bytewise(), text)


# --- nothing to play


def test_other_models_say_what_they_are():
    piece = Tokenizer(WordPiece({"a": 0, "##b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    level = Tokenizer(WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    for tokenizer, kind in ((piece, "wordpiece"), (level, "wordlevel")):
        vocabulary = Vocabulary(tokenizer)
        word = cut(vocabulary, "a").words[0]
        assert story(rules(vocabulary), word).why_not == kind


def test_the_toy_says_so():
    with pytest.raises(Fault) as raised:
        cut(open_vocabulary(resolve("toy")), "tell me")
    assert raised.value.code == "toy_no_merges"


def test_an_empty_text_has_no_words():
    assert cut(byte_level(), "").words == ()


@pytest.mark.parametrize("name", ["tiny"])
def test_opened_without_weights_it_is_the_models_own(name, tiny):
    alone, loaded = open_vocabulary(resolve(name)), tiny.vocabulary
    assert alone.size == loaded.size
    assert alone.end_ids == loaded.end_ids
    assert alone.chat("Hi") == loaded.chat("Hi")
    assert CHAT_TEMPLATE


@pytest.mark.model
def test_opened_without_weights_it_is_the_real_models_own(smollm2, default_model):
    alone, loaded = real(default_model), smollm2.vocabulary
    assert (alone.size, alone.end_ids) == (loaded.size, loaded.end_ids)
    assert alone.chat("Hi") == loaded.chat("Hi")
    assert alone.read(MIXED).ids == loaded.read(MIXED).ids
    assert list(itertools.islice(alone.labels(), 50)) == list(loaded.labels()[:50])
