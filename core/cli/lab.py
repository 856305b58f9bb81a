"""``lab``: the experiments of the engineering laboratory, with the figures of the pages."""

from __future__ import annotations

import argparse
from typing import Any, Final

from core.cli import (
    lab_kv_cache,
    lab_offload,
    lab_pipeline,
    lab_plan,
    lab_prune,
    lab_quantize,
    lab_replicas,
    lab_roofline,
    lab_speculative,
    lab_tensor_parallel,
    lab_training,
)

EXPERIMENTS: Final[dict[str, tuple[str, Any]]] = {
    "kv-cache": ("a text with and without a KV cache, its size, smaller ones", lab_kv_cache),
    "quantize": ("fewer bits a weight: what it costs, what it saves", lab_quantize),
    "prune": ("weights set to zero, parts taken out, and what that costs and saves", lab_prune),
    "tensor-parallel": ("every layer cut lengthwise among processes", lab_tensor_parallel),
    "pipeline": ("the layers dealt out to processes, a batch on its way through", lab_pipeline),
    "offload": ("a model in less memory than it needs", lab_offload),
    "replicas": ("copies and batches: throughput against latency", lab_replicas),
    "roofline": ("what this machine can do at most, and a model's passes beside it", lab_roofline),
    "training": ("a few real training steps on a copy, beside inference", lab_training),
    "speculative": ("a quick draft proposes, the model judges its tokens", lab_speculative),
    "plan": ("what fits where, and how fast it could be at best", lab_plan),
}
"""Name → (what it does, the module with ``add(parser)`` and ``run(typed)``)."""


def add(command: argparse.ArgumentParser) -> None:
    """A parser for each experiment."""
    names = command.add_subparsers(dest="experiment", required=True, metavar="EXPERIMENT")
    for name, (help, module) in EXPERIMENTS.items():
        parser = names.add_parser(name, help=help, description=help, allow_abbrev=False)
        module.add(parser)


def run(typed: argparse.Namespace) -> None:
    """Raises Fault where the experiment cannot be done."""
    EXPERIMENTS[typed.experiment][1].run(typed)
