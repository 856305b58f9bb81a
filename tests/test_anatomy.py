"""The walk through a layer: nothing is left out, nothing counted twice, formulas as they are."""

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from core.anatomy import Sizes, totals, walk
from core.engine.local import LocalEngine
from core.models.tiny import ARCHITECTURES, tiny_of

SIZES = Sizes(read=7, seen=8)


def windows(engine):
    return [engine.window(layer) for layer in range(engine.info.layers)]


def counted(model, ids, **rest) -> int:
    """FLOPs of matrix products that torch itself counts; rotary angles are no part of the walk."""
    counter = FlopCounterMode(display=False)
    with counter, torch.inference_mode():
        model(ids, logits_to_keep=1, **rest)
    per_module = counter.get_flop_counts()
    rotary = sum(
        sum(ops.values()) for name, ops in per_module.items() if name.endswith("rotary_emb")
    )
    return counter.get_total_flops() - rotary


def step_flops(model, sizes) -> int:
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    with torch.inference_mode():
        model(torch.ones((1, sizes.seen - 1), dtype=torch.long), cache=cache, use_cache=True)
    return counted(model, torch.ones((1, 1), dtype=torch.long), cache=cache, use_cache=True)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_parameters_sum_to_the_models_total_and_flops_are_torchs(architecture):
    loaded = tiny_of(architecture)
    engine = LocalEngine(loaded)
    whole = totals(engine.anatomy(), engine.info, SIZES, windows(engine))
    assert whole.parameters == engine.info.parameters
    assert whole.parameters == (
        whole.parameters_before + whole.parameters_layers + whole.parameters_after
    )
    ids = torch.ones((1, SIZES.read), dtype=torch.long)
    assert whole.prefill == counted(loaded.model, ids)
    assert whole.step == step_flops(loaded.model, SIZES)


def test_a_sliding_window_shortens_the_step():
    loaded = tiny_of("gemma3")
    engine = LocalEngine(loaded)
    sizes = Sizes(read=7, seen=30)
    assert windows(engine) == [8, 8, None]
    whole = totals(engine.anatomy(), engine.info, sizes, windows(engine))
    assert whole.step == step_flops(loaded.model, sizes)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_parameter_of_a_layer_belongs_to_one_operation(architecture):
    engine = LocalEngine(tiny_of(architecture))
    parts = engine.anatomy()
    made = walk(parts, engine.info, 1, SIZES, rope=engine.rope(1))
    own = [part for part in parts if part.layer == 1]
    named = [name for operation in made.inside for name in operation.parts]
    assert sorted(named) == sorted(part.name for part in own)
    assert sum(o.parameters for o in made.inside) == sum(part.parameters for part in own)
    assert "other" not in {o.kind for o in (*made.before, *made.inside, *made.after)}
    assert all(o.formula for o in (*made.before, *made.inside, *made.after))


KINDS = {
    "llama": (
        "sequential",
        "norm queries keys values rope scores softmax mix output residual "
        "norm gate up gated down residual",
    ),
    "gpt2": (
        "sequential",
        "norm qkv scores softmax mix output residual norm up activation down residual",
    ),
    "qwen3": (
        "sequential",
        "norm queries keys values head_norm rope scores softmax mix output residual "
        "norm gate up gated down residual",
    ),
    "gemma3": (
        "sandwich",
        "norm queries keys values head_norm rope scores softmax mix output norm_after residual "
        "norm gate up gated down norm_after residual",
    ),
    "phi": (
        "parallel",
        "norm queries keys values rope scores softmax mix output up activation down residual_both",
    ),
}


@pytest.mark.parametrize("architecture", KINDS)
def test_the_order_is_that_of_the_architecture(architecture):
    engine = LocalEngine(tiny_of(architecture))
    made = walk(engine.anatomy(), engine.info, 0, SIZES, rope=engine.rope(0))
    structure, kinds = KINDS[architecture]
    assert made.structure == structure
    assert " ".join(o.kind for o in made.inside) == kinds


def formula(engine, kind, **rest):
    made = walk(engine.anatomy(), engine.info, 0, SIZES, rope=engine.rope(0), **rest)
    every = (*made.before, *made.inside, *made.after)
    return next(o.formula for o in every if o.kind == kind)


def test_formulas_are_those_of_the_architecture():
    llama, gpt2, gemma3, phi, qwen2 = (
        LocalEngine(tiny_of(name)) for name in ("llama", "gpt2", "gemma3", "phi", "qwen2")
    )
    assert r"\mu" not in formula(llama, "norm")
    assert formula(llama, "norm").endswith(r"\odot w")
    assert formula(gpt2, "norm").endswith(r"\odot w+b")
    assert formula(gemma3, "norm").endswith(r"\odot (1+w)")
    assert r"a=\mathrm{SiLU}(g)\odot u\\" in formula(llama, "gated")
    assert r"a=\mathrm{GELU}(g)\odot u\\" in formula(gemma3, "gated")
    assert r"\tanh" in formula(gpt2, "activation")
    assert formula(llama, "queries") == r"Q=\hat h\,W_{Q}^{\mathsf T}"
    assert formula(qwen2, "queries") == r"Q=\hat h\,W_{Q}^{\mathsf T}+b_{Q}"
    assert formula(gpt2, "qkv") == r"[Q,K,V]=\hat h\,W_{QKV}+b_{QKV}"
    assert formula(llama, "scores") == (
        r"A_h=\frac{Q_h K_{\lceil h/2\rceil}^{\mathsf T}}{\sqrt d}+M"
    )
    assert formula(phi, "mix") == r"O_h=P_h V_{h}"
    assert formula(llama, "scores", scaling=0.0771).startswith(r"A_h=0.0771\cdot Q_h")
    assert formula(gemma3, "embedding_scaled") == r"h=\sqrt D\;E[\mathrm{id}]"
    assert formula(gpt2, "table") == r"h\leftarrow h+P[p]"
    assert formula(phi, "residual_both") == r"h\leftarrow h+o+f"
    # Phi turns half of the dimensions of a head only.
    assert r"x_{i+2}" in formula(phi, "rope")
    assert r"x_{i+4}" in formula(llama, "rope")


def test_shapes_carry_the_runs_numbers():
    engine = LocalEngine(tiny_of("llama"))
    made = walk(engine.anatomy(), engine.info, 0, SIZES)
    shape = {o.kind: o.shape for o in made.inside}
    assert shape["queries"] == (("H", 4), ("T", 7), ("d", 8))
    assert shape["keys"] == (("G", 2), ("T", 7), ("d", 8))
    assert shape["scores"] == (("H", 4), ("T", 7), ("T", 7))
    assert shape["gate"] == (("T", 7), ("I", 64))
    assert made.after[-1].shape == (("1", 1), ("V", engine.info.vocabulary))
    flops = {o.kind: (o.prefill, o.step) for o in made.inside}
    assert flops["queries"] == (2 * 7 * 32 * 32, 2 * 32 * 32)
    assert flops["scores"] == (2 * 4 * 7 * 7 * 8, 2 * 4 * 1 * 8 * 8)


def test_an_unknown_architecture_is_not_given_an_order():
    engine = LocalEngine(tiny_of("llama"))
    import dataclasses

    parts = tuple(
        dataclasses.replace(part, name=part.name.replace("mlp.", "mixer.experts."))
        for part in engine.anatomy()
    )
    made = walk(parts, engine.info, 0, SIZES)
    assert made.structure == "unknown"
    assert [o.kind for o in made.inside].count("other") == 3
    whole = totals(parts, engine.info, SIZES, windows(engine))
    assert whole.parameters == engine.info.parameters


@pytest.mark.model
@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_the_packaged_models_are_accounted_for(name, request):
    engine = request.getfixturevalue(name)
    whole = totals(engine.anatomy(), engine.info, SIZES, windows(engine))
    assert whole.parameters == engine.info.parameters
    tied = walk(engine.anatomy(), engine.info, 0, SIZES).after[-1]
    assert (tied.kind, tied.parameters) == ("head_tied", 0)
    assert tied.step == 2 * engine.info.width * engine.info.vocabulary
    assert math.isclose(whole.step, 2 * engine.info.parameters, rel_tol=0.02)
