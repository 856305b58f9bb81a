"""Decoding: from logits to a choice, and from choices to a run (DESIGN §4)."""

from core.decode.candidates import Candidate, candidates, locate
from core.decode.choose import choose
from core.decode.draw import draw, uniform
from core.decode.generate import Stopped, generate, run, stop_reason
from core.decode.measure import bits, entropy, log_softmax, probabilities
from core.decode.stages import apply_stages

__all__ = [
    "Candidate",
    "Stopped",
    "apply_stages",
    "bits",
    "candidates",
    "choose",
    "draw",
    "entropy",
    "generate",
    "locate",
    "log_softmax",
    "probabilities",
    "run",
    "stop_reason",
    "uniform",
]
