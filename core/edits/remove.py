"""Parts of a model physically taken out, on torch: layers, groups of heads, neurons.

Each leaves a smaller model of the same architecture: modules, config and caches agree again, so
whatever reads a model reads the edited one too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from core.edits.calibrate import Calibration, input_norms
from core.edits.pieces import (
    Attention,
    FeedForward,
    attention_of,
    configs_of,
    feed_forward_of,
    layers_of,
)
from core.edits.spec import ModelEdit
from core.edits.zero import silence_heads
from core.faults import Fault


def remove_parts(model: Any, edit: ModelEdit, calibration: Calibration) -> None:
    """Heads silenced, then layers, groups and neurons taken out, in place.

    Layers and heads are those of the model as it comes, whatever else goes. Raises Fault for
    what the model has not, and where it cannot run without these parts.
    """
    if edit.heads:
        silence_heads(model, edit.heads)
    if edit.layers:
        remove_layers(model, edit.layers)
    if edit.groups:
        remove_groups(model, edit.groups)
    if edit.neurons:
        remove_neurons(model, edit.neurons, calibration)
    if edit.removes:
        _try(model)


def _try(model: Any) -> None:
    """Read two tokens: an architecture of another build would stumble now, not on a page."""
    try:
        with torch.inference_mode():
            model(torch.zeros(1, 2, dtype=torch.long, device=model.device), use_cache=False)
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise Fault("edit_not_possible", architecture=type(model).__name__) from error


def remove_layers(model: Any, layers: Sequence[int]) -> None:
    """Take these layers out, in place; the others move up.

    Raises Fault for a layer that the model has not, and for all of them.
    """
    owner, name, found = layers_of(model)
    for layer in layers:
        if layer >= len(found):
            raise Fault("no_such_layer", layer=layer, last=len(found) - 1)
    gone = set(layers)
    if len(gone) == len(found):
        raise Fault("edit_removes_all_layers", count=len(found))
    stay = [place for place in range(len(found)) if place not in gone]
    setattr(owner, name, nn.ModuleList([found[place] for place in stay]))
    for config in configs_of(model):
        kinds = getattr(config, "layer_types", None)
        config.num_hidden_layers = len(stay)
        if kinds:
            config.layer_types = [kinds[place] for place in stay]
    for new, place in enumerate(stay):
        for module in found[place].modules():
            if hasattr(module, "layer_idx"):
                setattr(module, "layer_idx", new)  # noqa: B010 - a module's own plain attribute


def remove_groups(model: Any, groups: int) -> None:
    """Take so many KV heads, with the query heads that share them, out of every layer, in place.

    Those whose weights have the smallest norm (queries, keys, values and output together), in
    each layer for itself. Raises Fault where that would leave none, and for an architecture
    that keeps them in another form.
    """
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    if kv_heads == 1:
        raise Fault("edit_one_group")
    if groups >= kv_heads:
        raise Fault("edit_removes_all_groups", count=kv_heads, most=kv_heads - 1)
    _, _, layers = layers_of(model)
    found = [attention_of(model, layer) for layer in layers]
    left, shared = kv_heads - groups, heads // kv_heads
    size = found[0].key.weight.shape[0] // kv_heads
    with torch.inference_mode():
        for attention in found:
            norms = group_norms(attention, kv_heads)
            stay = norms.argsort(stable=True)[groups:].sort().values
            _keep_groups(attention, stay, kv_heads, size)
            _tell_attention(attention.module, left, left * shared)
    for config in configs_of(model):
        config.head_dim = size
        config.num_attention_heads = left * shared
        config.num_key_value_heads = left


def group_norms(attention: Attention, kv_heads: int) -> Tensor:
    """√ of the sum of squares of all weights that belong to each KV head, [KV head], float32."""
    rows = [m.weight for m in (attention.query, attention.key, attention.value)]
    parts = [*rows, attention.out.weight.T]
    squares = [w.float().pow(2).reshape(kv_heads, -1).sum(1) for w in parts]
    return torch.stack(squares).sum(0).sqrt()


def _keep_groups(attention: Attention, stay: Tensor, kv_heads: int, size: int) -> None:
    for matrix in (attention.query, attention.key, attention.value):
        _keep_rows(matrix, _blocks(stay, matrix.weight.shape[0] // kv_heads))
    columns = _blocks(stay, attention.out.weight.shape[1] // kv_heads)
    _keep_columns(attention.out, columns)
    # Norms over all heads at once (OLMo 2) have a weight for each row that went.
    for name in ("q_norm", "k_norm"):
        norm = getattr(attention.module, name, None)
        weight = getattr(norm, "weight", None)
        if isinstance(norm, nn.Module) and weight is not None and weight.shape[0] != size:
            rows = _blocks(stay, weight.shape[0] // kv_heads)
            norm.weight = _fresh(weight[rows])


def _tell_attention(module: Any, kv_heads: int, heads: int) -> None:
    """Attributes in which some architectures keep the counts besides the config."""
    for name, count in (
        ("num_key_value_heads", kv_heads),
        ("num_kv_heads", kv_heads),
        ("num_heads", heads),
        ("num_attention_heads", heads),
    ):
        if hasattr(module, name):
            setattr(module, name, count)


def remove_neurons(model: Any, share: float, calibration: Calibration) -> None:
    """Take this share of the feed-forward neurons, rounded down, out of every layer, in place.

    Those with the lowest :func:`neuron_scores`. Raises Fault for an architecture that keeps
    them in another form.
    """
    _, _, layers = layers_of(model)
    parts = [feed_forward_of(model, layer) for layer in layers]
    neurons = parts[0].down.weight.shape[1]
    if any(part.down.weight.shape[1] != neurons for part in parts):
        raise Fault("edit_neurons_differ", architecture=type(model).__name__)
    count = neurons_out(neurons, share)
    ranked = neuron_scores(model, parts, calibration())
    with torch.inference_mode():
        for part, found in zip(parts, ranked, strict=True):
            stay = found.argsort(stable=True)[count:].sort().values
            _keep_neurons(part, stay, neurons)
    for config in configs_of(model):
        for name in ("intermediate_size", "n_inner", "ffn_dim"):
            if isinstance(getattr(config, name, None), int):
                setattr(config, name, neurons - count)


def neurons_out(neurons: int, share: float) -> int:
    """How many of ``neurons`` a share takes out."""
    # 0.3 · 10 is a hair below 3 in floating point.
    return int(share * neurons + 1e-9)


def neuron_scores(model: Any, parts: Sequence[FeedForward], ids: Sequence[int]) -> list[Tensor]:
    """How much each neuron of each layer wrote on the calibration text, [neuron], float32.

    ‖its activations over all positions‖ · ‖its column of the matrix out of the neurons‖.
    """
    downs = [(str(place), part.down) for place, part in enumerate(parts)]
    norms = input_norms(model, downs, ids)
    with torch.inference_mode():
        return [norms[name] * down.weight.float().norm(dim=0) for name, down in downs]


def _keep_neurons(part: FeedForward, stay: Tensor, neurons: int) -> None:
    for matrix in part.into:
        fused = matrix.weight.shape[0] == 2 * neurons
        _keep_rows(matrix, torch.cat([stay, stay + neurons]) if fused else stay)
    _keep_columns(part.down, stay)
    for name in ("intermediate_size", "ffn_dim"):
        if isinstance(getattr(part.module, name, None), int):
            setattr(part.module, name, len(stay))


# ---------------------------------------------------------------- smaller matrices


def _blocks(stay: Tensor, size: int) -> Tensor:
    """The rows of the blocks ``stay``, each ``size`` rows high."""
    return (stay[:, None] * size + torch.arange(size, device=stay.device)).reshape(-1)


def _fresh(tensor: Tensor) -> nn.Parameter:
    """A tensor of its own: a view would keep the whole one in memory."""
    with torch.inference_mode(False):
        return nn.Parameter(tensor.detach().clone().contiguous(), requires_grad=False)


def _keep_rows(matrix: nn.Linear, rows: Tensor) -> None:
    if matrix.bias is not None:
        matrix.bias = _fresh(matrix.bias[rows])
    matrix.weight = _fresh(matrix.weight[rows])
    matrix.out_features = len(rows)


def _keep_columns(matrix: nn.Linear, columns: Tensor) -> None:
    matrix.weight = _fresh(matrix.weight[:, columns])
    matrix.in_features = len(columns)
