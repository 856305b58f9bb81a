"""Tokenizers of other families: SentencePiece-like ones, and whole words."""

import pytest
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE, WordLevel

from core.faults import Fault
from core.text.pieces import ByteLevel, Decoded, SentencePiece, pieces_of
from core.tokens import Vocabulary
from tests.vocabularies import sentencepiece, words


def labels(vocabulary, text, **how):
    return [vocabulary.label(id) for id in vocabulary.read(text, **how).ids]


def test_the_start_token_is_added_and_is_not_text():
    vocabulary = sentencepiece()
    encoded = vocabulary.encode("hi 法国")
    assert labels(vocabulary, "hi 法国") == ["<bos>", "hi", "␣", "法国"]
    assert encoded.text == "hi 法国"
    assert encoded.notes == ()
    tokens = vocabulary.tokens(encoded.ids, 4)
    assert (tokens[0].special, tokens[0].text, tokens[0].span) == (True, "<bos>", (0, 5))
    assert b"".join(t.bytes for t in tokens if not t.special) == "hi 法国".encode()
    assert vocabulary.encode("").ids == (0,)


def test_bytes_of_a_character_that_is_in_no_entry():
    vocabulary = sentencepiece()
    assert labels(vocabulary, "a国é") == ["<bos>", "a", "国", "‹C3›", "‹A9›"]
    tokens = vocabulary.tokens(vocabulary.encode("é").ids, 0)
    assert [(t.piece, t.bytes, t.text, t.group, t.span) for t in tokens[1:]] == [
        ("<0xC3>", b"\xc3", "", (1, 3), (5, 6)),
        ("<0xA9>", b"\xa9", "", (1, 3), (5, 6)),
    ]


def test_a_byte_entry_looks_like_a_byte_and_not_like_its_letter():
    vocabulary = sentencepiece()
    assert labels(vocabulary, "\n\0") == ["<bos>", "‹0A›", "‹00›"]
    assert len(set(vocabulary.labels())) == vocabulary.size
    assert labels(vocabulary, "<b>") == ["<bos>", "<", "b", ">"]


def test_a_typed_space_sign_is_read_as_a_space_and_said():
    encoded = sentencepiece().encode("a▁hi")
    assert encoded.text == "a hi"
    assert encoded.notes == ("text_changed",)


def test_a_typed_start_token_is_not_doubled():
    vocabulary = sentencepiece()
    encoded = vocabulary.encode("<bos>hi")
    assert labels(vocabulary, "<bos>hi") == ["<bos>", "hi"]
    assert encoded.text == "<bos>hi"
    assert encoded.notes == ("control_in_prompt",)
    assert labels(vocabulary, "<bos>", literal=True)[:3] == ["<bos>", "<", "b"]


def test_a_chat_that_writes_its_own_start_token():
    vocabulary = sentencepiece()
    text = "<bos><turn>user\nhi<eos>\n<turn>model\n"
    assert vocabulary.chat(" hi ") == text
    encoded = vocabulary.read("hi", chat=True)
    assert encoded.text == text
    assert [vocabulary.label(id) for id in encoded.ids if vocabulary.is_special(id)] == [
        *("<bos>", "<turn>", "<eos>", "<turn>")
    ]
    literal = vocabulary.read("<eos>", chat=True, literal=True)
    assert [id for id in literal.ids if vocabulary.is_special(id)] == [0, 2, 1, 2]
    assert literal.text == vocabulary.chat("<eos>")
    assert vocabulary.read("hi", chat=True, literal=True).ids == encoded.ids


def test_a_space_put_before_the_text_is_no_part_of_it():
    vocabulary = sentencepiece(prefixed=True)
    encoded = vocabulary.encode("hi a")
    assert labels(vocabulary, "hi a") == ["<bos>", "␣hi", "␣a"]
    assert encoded.text == "hi a"
    assert encoded.notes == ()
    assert [t.bytes for t in vocabulary.tokens(encoded.ids, 0)] == [b"<bos>", b"hi", b" a"]
    assert vocabulary.bytes_of(encoded.ids[1]) == b" hi"


def test_whole_words():
    vocabulary = words()
    encoded = vocabulary.encode("the cat <end>")
    tokens = vocabulary.tokens(encoded.ids, 1)
    assert [t.bytes for t in tokens] == [b"the", b" cat", b"<end>"]
    assert [t.special for t in tokens] == [False, False, True]
    assert vocabulary.text(encoded.ids, skip_special=True) == "the cat"
    assert vocabulary.search("cat") == (1,)


def test_a_word_outside_the_vocabulary_is_a_sentence_not_a_traceback():
    with pytest.raises(Fault) as fault:
        words().encode("the dog")
    assert fault.value.code == "text_unreadable"


def test_a_tokenizer_that_rewrites_says_so():
    tokenizer = Tokenizer(WordLevel({"the": 0, "cat": 1}))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    encoded = Vocabulary(tokenizer).encode("The  CAT")
    assert (encoded.text, encoded.notes) == ("the cat", ("text_changed",))


def test_the_family_is_read_from_the_parts():
    plain = Tokenizer(BPE())
    assert isinstance(pieces_of(plain), Decoded)
    plain.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(), pre_tokenizers.ByteLevel()]
    )
    assert isinstance(pieces_of(plain), ByteLevel)
    plain.decoder = decoders.Metaspace()
    assert pieces_of(plain) == SentencePiece("▁", fallback=False, strip=True)
    plain.decoder = decoders.Metaspace("_", prepend_scheme="never")
    assert pieces_of(plain) == SentencePiece("_", fallback=False, strip=False)
    plain.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    assert pieces_of(plain) == SentencePiece("▁", fallback=True, strip=False)
    plain.decoder = decoders.ByteLevel()
    assert isinstance(pieces_of(plain), ByteLevel)
