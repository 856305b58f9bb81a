"""Weights that are really stored as codes: the same as rounding them, in fewer bytes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from transformers.pytorch_utils import Conv1D

from core.edits import pack, pack_bnb
from core.edits.apply import apply
from core.edits.grid import SPANS, Grid, round_to
from core.edits.pack import Int4Linear, Int8Linear
from core.edits.rounding import coded, matrices, rounded, rows_of
from core.edits.spec import GROUPS, parse_edit
from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab.quality import quality, reference
from core.models.loaded import tensor_bytes
from core.models.tiny import ARCHITECTURES, tiny_of
from core.trace import Capture

GRIDS = st.builds(
    Grid, st.integers(2, 8), st.sampled_from(SPANS), st.sampled_from([1, 3, 32]), st.booleans()
)
TABLES = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.integers(1, 40)),
    elements=st.floats(-100, 100, width=32),
)
BF16 = 2**-8
"""One bf16 rounding, relative."""


@settings(max_examples=60)
@given(TABLES, GRIDS)
def test_torch_rounds_as_the_arithmetic_says_to_the_bit(table, grid):
    law, weight = round_to(table, grid), torch.from_numpy(table)
    assert np.array_equal(rounded(weight, grid).numpy(), law.values)
    found = coded(weight, grid)
    assert np.array_equal(found.codes.numpy(), law.codes)
    assert np.array_equal(found.scale.expand(-1, law.scale.shape[1]).numpy(), law.scale)


def test_rows_of_zeros_outliers_and_halves_by_hand():
    table = torch.tensor([[0.0, 0, 0, 0], [0.5, 1.5, 2.5, 7.0], [0.1, -0.2, 0.3, 70.0]])
    found = coded(table, Grid(4))
    assert found.scale[:, 0].tolist() == [0.0, 1.0, 10.0]
    assert found.codes.tolist() == [[0, 0, 0, 0], [0, 2, 2, 7], [0, 0, 0, 7]]
    assert rounded(table, Grid(4)).tolist() == [[0, 0, 0, 0], [0, 2, 2, 7], [0, 0, 0, 70]]


def test_many_blocks_are_one_matrix(monkeypatch):
    from core.edits import rounding

    table = torch.randn(37, 24)
    whole = [rounded(table, Grid(4, span)) for span in SPANS]
    monkeypatch.setattr(rounding, "BLOCK", 50)
    assert all(
        torch.equal(rounded(table, Grid(4, s)), w) for s, w in zip(SPANS, whole, strict=True)
    )


# ---------------------------------------------------------------- one layer

SHAPES = [(1, 1), (7, 13), (16, 32), (33, 100), (192, 576)]


def _layer(kind, weight, bias=None):
    if kind == "int8":
        return Int8Linear(weight, bias), Grid(8)
    group = int(kind.split(":")[1])
    return Int4Linear(weight, bias, group=group), Grid(4, "group", group, symmetric=False)


KINDS = ["int8", *(f"int4:{group}" for group in GROUPS)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_packed_layer_is_its_rounded_twin(kind, shape):
    torch.manual_seed(1)
    weight, bias, x = torch.randn(shape), torch.randn(shape[0]), torch.randn(3, shape[1])
    layer, grid = _layer(kind, weight, bias)
    twin, reach = rounded(weight, grid), float(weight.abs().max())
    # Codes are the same; scales and offsets are bf16.
    assert float((layer.weight.float() - twin).abs().max()) <= 3 * BF16 * reach
    wanted = x.bfloat16().float() @ layer.weight.float().T + bias.bfloat16().float()
    slack = 4 * BF16 * float(x.abs().sum(1).max()) * reach
    assert float((layer(x).float() - wanted).abs().max()) <= slack
    assert layer(x).dtype == x.dtype
    assert layer(x[None, None]).shape == (1, 1, 3, shape[0])


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_kernels_the_answer_is_the_same(kind, monkeypatch):
    torch.manual_seed(2)
    weight, x = torch.randn(33, 100), torch.randn(2, 100)
    quick, _ = _layer(kind, weight)
    monkeypatch.setattr(pack, "has_int8", lambda device: False)
    monkeypatch.setattr(pack, "has_int4", lambda device: False)
    slow, _ = _layer(kind, weight)
    assert torch.equal(quick.weight, slow.weight)
    assert float((quick(x) - slow(x)).abs().max()) <= 0.02 * float(slow(x).abs().max())
    assert tensor_bytes(quick.buffers()) == tensor_bytes(slow.buffers())


def test_a_kernel_that_is_missing_or_wrong_is_not_used(monkeypatch):
    for name, check in (
        ("_weight_int8pack_mm", pack.has_int8),
        ("_weight_int4pack_mm_for_cpu", pack.has_int4),
    ):
        check.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(torch, name, lambda x, *_: torch.zeros(1, 16, dtype=x.dtype))
            assert not check("cpu")
        check.cache_clear()
        with monkeypatch.context() as patch:
            patch.delattr(torch, name)
            assert not check("cpu")
        check.cache_clear()
    assert not pack.has_int8("cuda")


def test_gradients_go_back_through_the_weights():
    weight = torch.randn(24, 32)
    for kind in KINDS:
        layer, _ = _layer(kind, weight)
        x = torch.randn(1, 32, requires_grad=True)
        (found,) = torch.autograd.grad(layer(x)[0, 5], x)
        assert torch.allclose(found[0], layer.weight[5].float(), atol=0.02)


def test_bytes_of_a_layer_are_those_of_its_tensors():
    weight = torch.randn(64, 128)
    sizes = {kind: tensor_bytes(_layer(kind, weight)[0].buffers()) for kind in KINDS}
    # codes + scales: a byte each and 2 a row; half a byte each and 4 a group
    assert sizes["int8"] == 64 * 128 + 64 * 2
    assert sizes["int4:64"] == 64 * 128 // 2 + 64 * 2 * 4
    assert sizes["int4:32"] == 64 * 128 // 2 + 64 * 4 * 4


# ---------------------------------------------------------------- a whole model


def _edited(architecture, edit):
    return LocalEngine(apply(tiny_of(architecture), parse_edit(edit), name="x"))


@pytest.fixture(scope="module")
def rows():
    found = {}
    for architecture in ARCHITECTURES:
        turns = reference(LocalEngine(tiny_of(architecture)), most=48)
        while True:
            try:
                next(turns)
            except StopIteration as end:
                found[architecture] = end.value
                break
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    ("packed", "twin"), [("int8", "bits:8"), ("int4:32", "bits:4:group:32:asym")]
)
def test_a_packed_model_is_its_rounded_twin(architecture, packed, twin, rows):
    engines = [_edited(architecture, edit) for edit in (packed, twin)]
    found = []
    for engine in engines:
        with engine.borrowed() as model:
            found.append(quality(model, rows[architecture]))
    assert abs(found[0].kl - found[1].kl) <= 0.002 + 0.02 * found[1].kl
    assert found[0].perplexity == pytest.approx(found[1].perplexity, rel=0.01)
    plain = LocalEngine(tiny_of(architecture)).info
    assert engines[0].info.parameters == engines[1].info.parameters == plain.parameters
    assert engines[1].info.bytes_in_memory == plain.bytes_in_memory
    assert engines[0].info.bytes_in_memory < 0.65 * plain.bytes_in_memory


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize("edit", ["bf16", "int8", "int4:64:head", "neurons:0.25+int4:32"])
def test_a_packed_model_answers_every_question(architecture, edit):
    if architecture == "gpt2" and "neurons" in edit:
        pytest.skip("its matrices stand the other way round")
    engine = _edited(architecture, edit)
    with engine.borrowed() as model:
        assert engine.info.bytes_in_memory == tensor_bytes([*model.parameters(), *model.buffers()])
    ids = engine.vocabulary.read("the thing").ids
    forward = engine.forward(ids, capture=Capture(scores=True, parts=True, neurons=True))
    assert np.isfinite(forward.logits).all()
    assert sum(part.parameters for part in engine.anatomy()) == engine.info.parameters
    last = forward.residual[-1, -1:]
    assert np.abs(engine.unembed(last)[0] - forward.logits).max() < 0.1
    assert engine.project(last).shape == (1, engine.info.vocabulary)
    assert engine.neuron_outputs(0, [0, 1]).shape == (2, engine.info.width)
    assert np.isfinite(engine.attribution(ids, 5)).all()
    assert np.abs(engine.next_logits([ids, ids[:-1]])[0] - forward.logits).max() < 0.1


def test_a_tied_head_is_packed_as_a_copy_and_counted_once():
    loaded = tiny_of("llama")
    loaded.model.lm_head.weight = loaded.model.model.embed_tokens.weight
    count = sum(p.numel() for p in loaded.model.parameters())
    table = loaded.model.model.embed_tokens.weight.clone()
    found = apply(loaded, parse_edit("int8:head"), name="x")
    assert found.info.parameters == count
    assert torch.equal(found.model.model.embed_tokens.weight, table.bfloat16())
    assert isinstance(found.model.lm_head, Int8Linear)
    assert sum(part.parameters for part in LocalEngine(found).anatomy()) == count


def test_gpt2_matrices_are_rounded_too():
    loaded = tiny_of("gpt2")
    before = {name: rows_of(module).clone() for name, module in matrices(loaded.model)}
    assert all(isinstance(module, Conv1D) for _, module in matrices(loaded.model))
    apply(loaded, parse_edit("bits:4"), name="x")
    for name, module in matrices(loaded.model):
        assert torch.equal(rows_of(module), rounded(before[name], Grid(4))), name


def test_rotary_frequencies_are_not_rounded():
    before = tiny_of("llama").model.model.rotary_emb.inv_freq
    after = apply(tiny_of("llama"), parse_edit("bf16"), name="x").model.model.rotary_emb.inv_freq
    assert torch.equal(before, after)


def test_bitsandbytes_is_asked_for_in_a_sentence(monkeypatch):
    def missing(name):
        raise ImportError(name)

    pack_bnb._library.cache_clear()
    monkeypatch.setattr(pack_bnb, "import_module", missing)
    with pytest.raises(Fault) as caught:
        apply(tiny_of("llama"), parse_edit("nf4"), name="x")
    assert caught.value.code == "no_bitsandbytes"


def test_the_last_position_reaches_the_head_by_itself():
    """With the strides of a whole text, torch takes twenty times as long."""
    model = apply(tiny_of("llama"), parse_edit("bf16"), name="x").model
    seen = []
    model.lm_head.register_forward_pre_hook(lambda _, args: seen.append(args[0].stride()))
    with torch.inference_mode():
        model(torch.arange(9)[None], use_cache=False, logits_to_keep=1)
    assert seen == [(32, 32, 1)]
