"""One text, several tokenizers; and a tokenizer fetched without its model."""

from types import SimpleNamespace

import pytest

from core.faults import Fault
from core.models.cache import HOME_VARIABLE
from core.models.catalog import resolve
from core.models.tiny_text import tiny_tokenizer
from core.models.tokenizer import fetch_tokenizer, open_tokenizer, tokenizer_folder
from core.text.compare import prices, reading
from core.text.opened import open_vocabulary
from tests.vocabularies import byte_level, sentencepiece, words


def test_the_same_text_in_two_ways():
    ours, theirs = reading(byte_level(), "the 国"), reading(sentencepiece(), "a 国")
    assert [token.label for token in ours.tokens] == ["the", "␣", "国"]
    # the <bos> that this tokenizer adds by itself is not counted
    assert [token.piece for token in theirs.tokens] == ["a", "▁", "国"]
    assert (ours.entries, theirs.entries) == (byte_level().size, sentencepiece().size)
    assert not ours.changed


def test_a_start_that_was_typed_counts_no_more_than_the_added_one():
    assert [t.piece for t in reading(sentencepiece(), "<bos>a").tokens] == ["a"]
    literal = reading(sentencepiece(), "<bos>a", literal=True)
    assert "".join(t.text for t in literal.tokens) == "<bos>a"


def test_a_text_that_cannot_be_read_says_so():
    with pytest.raises(Fault) as raised:
        reading(words(), "the dog")
    assert raised.value.code == "text_unreadable"


def test_prices_are_counts():
    assert prices(byte_level(), ["the", "the the", "国", ""]) == (1, 2, 1, 0)


# --- a tokenizer without its model


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    return tmp_path


def fake_hub(monkeypatch, sizes):
    asked = []

    class Api:
        def model_info(self, name, **_):
            siblings = [SimpleNamespace(rfilename=n, size=s) for n, s in sizes.items()]
            return SimpleNamespace(siblings=siblings, sha="abc")

    def snapshot(name, *, revision, local_dir, allow_patterns):
        asked.append((name, revision, sorted(allow_patterns)))
        tiny_tokenizer().save(str(local_dir / "tokenizer.json"))
        config = '{"vocab_size": 300, "eos_token_id": [2, 0]}'
        (local_dir / "config.json").write_text(config, encoding="utf-8")

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    return asked


def test_only_the_tokenizer_is_fetched(monkeypatch, home):
    sizes = {"tokenizer.json": 9, "config.json": 9, "model.safetensors": 10**12, "x.py": 1}
    asked = fake_hub(monkeypatch, sizes)
    entry = resolve("org/name")
    assert tokenizer_folder(entry) is None
    with pytest.raises(Fault) as raised:
        open_tokenizer(entry)
    assert raised.value.code == "not_fetched"
    folder = fetch_tokenizer(entry)
    assert fetch_tokenizer(entry) == folder
    assert asked == [("org/name", "abc", ["config.json", "tokenizer.json"])]
    assert [path.name for path in folder.parent.iterdir()] == ["org--name"]
    vocabulary = open_vocabulary(entry)
    assert (vocabulary.size, vocabulary.end_ids) == (300, (0, 2))
    assert vocabulary.encode("the").ids == byte_level().encode("the").ids


@pytest.mark.parametrize("sizes", [{"vocab.txt": 5}, {"tokenizer.json": 10**9}])
def test_no_tokenizer_that_can_be_fetched(monkeypatch, home, sizes):
    fake_hub(monkeypatch, sizes)
    with pytest.raises(Fault) as raised:
        fetch_tokenizer(resolve("org/name"))
    assert raised.value.code == "hub_without_tokenizer"
    assert list((home / "tokenizers").iterdir()) == []


def test_offline_it_says_so(home):
    with pytest.raises(Fault) as raised:
        fetch_tokenizer(resolve("org/name"))
    assert raised.value.code == "hub_unreachable"
