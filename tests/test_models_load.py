"""Loading: the facts are read off the model, and what generate would do holds here too."""

import json
import shutil
import time

import pytest
import torch
from transformers import GenerationConfig

from core.faults import Fault
from core.models.catalog import CATALOGUE
from core.models.device import available_devices, pick_device, pick_dtype, set_threads
from core.models.load import chat_template, load
from core.models.loaded import end_ids, settle_end
from core.models.tiny import ARCHITECTURES, CHAT_TEMPLATE, tiny_of, tiny_tokenizer


def code_of(call, *arguments, **options) -> str:
    with pytest.raises(Fault) as caught:
        call(*arguments, **options)
    return caught.value.code


def test_tiny_is_made_at_once_and_is_always_the_same():
    load("tiny")
    start = time.perf_counter()
    loaded = load("tiny", device="cpu")
    assert time.perf_counter() - start < 1
    info = loaded.info
    assert (info.name, info.architecture) == ("tiny", "LlamaForCausalLM")
    assert (info.layers, info.heads, info.kv_heads, info.head_dim) == (2, 4, 2, 8)
    assert (info.width, info.vocabulary, info.context) == (32, 278, 512)
    assert (info.device, info.dtype, info.end_ids, info.chat) == ("cpu", "float32", (2,), True)
    assert info.parameters == CATALOGUE["tiny"].parameters == 36_384
    assert not loaded.model.training
    assert not any(p.requires_grad for p in loaded.model.parameters())
    again = tiny_of("llama")
    pairs = zip(loaded.model.parameters(), again.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_making_tiny_leaves_the_dice_of_others_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    tiny_of("llama")
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize(
    "text",
    [
        "the cat is of",
        "法国的首都是",
        "a\n\n\tb",
        "👩‍👩‍👧 é",
        "<|im_start|>user\nhi<|im_end|>",
        "\x00",
    ],
)
def test_the_tiny_tokenizer_reads_any_text(text):
    tokenizer = tiny_tokenizer()
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_the_tiny_tokenizer_knows_control_tokens_and_merges():
    tokenizer = tiny_tokenizer()
    assert tokenizer.encode("a<|im_end|>").ids[-1] == 2
    assert tokenizer.encode("is the").tokens == ["i", "s", "Ġthe"]
    assert tokenizer.encode("法国").tokens == ["æ³", "ķ", "åĽ½"]


EXPECTED = {
    "llama": (4, 2, 8),
    "gpt2": (4, 4, 8),
    "qwen2": (4, 2, 8),
    "qwen3": (4, 2, 16),
    "gemma3": (4, 2, 16),
    "mistral": (4, 2, 8),
    "phi": (4, 4, 8),
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_is_described_and_survives_a_folder(architecture, tmp_path):
    made = tiny_of(architecture)
    info = made.info
    assert (info.heads, info.kv_heads, info.head_dim) == EXPECTED[architecture]
    assert (info.width, info.context, info.end_ids) == (32, 512, (2,))
    made.model.save_pretrained(tmp_path)
    made.tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    loaded = load(str(tmp_path), device="cpu", dtype="float32")
    assert loaded.info.end_ids == (2,)
    assert loaded.chat_template == CHAT_TEMPLATE
    ids = torch.tensor([made.tokenizer.encode("the cat is of the man in the end").ids])
    with torch.inference_mode():
        there, here = made.model(ids).logits, loaded.model(ids).logits
    assert torch.equal(there, here)
    # scores that differ: otherwise nothing could be seen or tested with it
    assert there.std() > 0.3


def test_gemma_keeps_its_windows(tmp_path):
    made = tiny_of("gemma3")
    made.model.save_pretrained(tmp_path)
    made.tokenizer.save(str(tmp_path / "tokenizer.json"))
    config = load(str(tmp_path), device="cpu").model.config
    assert config.sliding_window == 8
    assert config.layer_types == ["sliding_attention", "sliding_attention", "full_attention"]


@pytest.mark.parametrize(
    ("own", "config", "expected"), [(2, 5, (2,)), ([7, 3], 5, (3, 7)), (None, 5, (5,))]
)
def test_end_tokens_are_those_of_generate(own, config, expected):
    model = tiny_of("llama").model
    model.generation_config = GenerationConfig(eos_token_id=own)
    model.config.eos_token_id = config
    settle_end(model)
    assert end_ids(model) == expected
    asked = model.generation_config.eos_token_id
    assert tuple(sorted(asked if isinstance(asked, list) else [asked])) == expected


def test_a_model_without_an_end():
    model = tiny_of("llama").model
    model.generation_config = GenerationConfig()
    model.config.eos_token_id = None
    settle_end(model)
    assert end_ids(model) == ()


def test_devices(monkeypatch):
    monkeypatch.delenv("TOKEN_BY_TOKEN_DEVICE", raising=False)
    assert available_devices()[-1] == "cpu"
    assert pick_device().type == available_devices()[0]
    assert pick_device("CPU").type == "cpu"
    for name in ("tpu", "cpu:1", "cuda:x", "cuda:99", ":"):
        assert code_of(pick_device, name) == "no_such_device"
    monkeypatch.setenv("TOKEN_BY_TOKEN_DEVICE", "abacus")
    assert code_of(load, "tiny") == "no_such_device"
    assert load("tiny", device="cpu").info.device == "cpu"


def test_number_formats(monkeypatch):
    monkeypatch.delenv("TOKEN_BY_TOKEN_DTYPE", raising=False)
    cpu = torch.device("cpu")
    assert pick_dtype(cpu) == torch.float32
    assert pick_dtype(cpu, "bf16") == torch.bfloat16
    assert code_of(pick_dtype, cpu, "int3") == "no_such_dtype"
    monkeypatch.setenv("TOKEN_BY_TOKEN_DTYPE", "bfloat16")
    info = load("tiny", device="cpu").info
    assert info.dtype == "bfloat16"
    assert info.bytes_in_memory < 2 * info.parameters + 200


def test_threads(monkeypatch):
    before = torch.get_num_threads()
    try:
        monkeypatch.setenv("TOKEN_BY_TOKEN_THREADS", "3")
        assert set_threads() == torch.get_num_threads() == 3
        monkeypatch.delenv("TOKEN_BY_TOKEN_THREADS")
        assert set_threads(replicas=10_000) == torch.get_num_threads() == 1
        for value in ("0", "-1", "two", "9999"):
            monkeypatch.setenv("TOKEN_BY_TOKEN_THREADS", value)
            assert code_of(set_threads) == "bad_threads"
    finally:
        torch.set_num_threads(before)


def test_what_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN_BY_TOKEN_HOME", str(tmp_path))
    assert code_of(load, "smollm2-135m") == "not_fetched"
    assert code_of(load, "toy") == "not_fetched"


@pytest.fixture
def folder(tmp_path):
    made = tiny_of("llama")
    made.model.save_pretrained(tmp_path / "some model")
    made.tokenizer.save(str(tmp_path / "some model" / "tokenizer.json"))
    return tmp_path / "some model"


def load_folder(folder):
    return load(str(folder), device="cpu")


def test_folders_that_cannot_be_loaded(folder):
    assert load_folder(folder).info.name == "some model"
    tokenizer = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text("{}")
    assert code_of(load_folder, folder) == "no_tokenizer"
    (folder / "tokenizer.json").write_text(tokenizer)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "no-such-thing"}))
    assert code_of(load_folder, folder) == "not_loadable"
    (folder / "config.json").write_text(json.dumps({"model_type": "t5"}))
    assert code_of(load_folder, folder) == "not_causal"


def test_damaged_weights(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert code_of(load_folder, folder) == "weights_damaged"


def test_pickles_are_not_read(folder):
    shutil.move(folder / "model.safetensors", folder / "pytorch_model.bin")
    assert code_of(load_folder, folder) == "folder_without_safetensors"


def test_a_models_own_code_is_not_run(folder):
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = "own"
    config["auto_map"] = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    assert code_of(load_folder, folder) == "not_loadable"
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("chat_template.jinja", "{{ a }}", "{{ a }}"),
        ("chat_template.json", '{"chat_template": "{{ b }}"}', "{{ b }}"),
        ("tokenizer_config.json", '{"chat_template": "{{ c }}"}', "{{ c }}"),
        (
            "tokenizer_config.json",
            '{"chat_template": [{"name": "rag", "template": "1"},'
            ' {"name": "default", "template": "2"}]}',
            "2",
        ),
        ("tokenizer_config.json", "{", None),
        ("tokenizer_config.json", "{}", None),
        ("chat_template.jinja", "x" * 300_000, None),
    ],
)
def test_chat_templates(tmp_path, file, text, expected):
    (tmp_path / file).write_text(text)
    assert chat_template(tmp_path) == expected


@pytest.mark.model
def test_the_default_model_says_paris(smollm2, default_model):
    info = smollm2.info
    entry = CATALOGUE[default_model]
    assert info.parameters == entry.parameters
    assert abs(info.bytes_in_memory - entry.bytes_in_memory) < 1000
    assert (info.layers, info.heads, info.kv_heads, info.head_dim) == (30, 9, 3, 64)
    assert (info.context, info.end_ids, info.chat) == (8192, (2,), True)
    ids = smollm2.vocabulary.encode("The capital of France is").ids
    logits = torch.tensor(smollm2.next_logits([ids])[0])
    best = int(logits.argmax())
    assert smollm2.vocabulary.text([best]) == " Paris"
    assert float(logits.softmax(-1)[best]) == pytest.approx(0.773, abs=0.01)


@pytest.mark.model
def test_the_default_model_cuts_digits_apart(default_model):
    tokenizer = load(default_model, device="cpu").tokenizer
    assert tokenizer.encode("a  12\n\n 7").tokens == ["a", "ĠĠ", "1", "2", "ĊĊĠ", "7"]


@pytest.mark.model
def test_gemma_reads_chinese(gemma3):
    info = gemma3.info
    assert info.parameters == CATALOGUE["gemma3-270m"].parameters
    assert (info.layers, info.heads, info.kv_heads, info.head_dim) == (18, 4, 1, 256)
    assert (info.context, info.end_ids, info.chat) == (32768, (1,), False)
    ids = gemma3.vocabulary.encode("法国的首都是").ids
    assert ids == (2, 83717, 180772, 15310)
    p = torch.tensor(gemma3.next_logits([ids])[0]).softmax(-1)
    words = [gemma3.vocabulary.text([int(i)]) for i in p.topk(2).indices]
    assert words == ["法国", "巴黎"]
    assert float(p.max()) == pytest.approx(0.068, abs=0.005)
