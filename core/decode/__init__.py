"""Decoding: from logits to a choice, and from choices to a run (DESIGN §4)."""

from core.decode.beam import BeamRun, beam_search, provider_of, search
from core.decode.beam_exhaustive import Exhaustive, exhaustive
from core.decode.beam_replay import Replay, replay
from core.decode.candidates import Candidate, candidates, locate
from core.decode.choose import choose
from core.decode.columns import PRESETS, parse_column, spell
from core.decode.compare import compare, seed_of, texts_of
from core.decode.difference import difference
from core.decode.draw import draw, uniform
from core.decode.figures import figures
from core.decode.generate import Stopped, generate, run, stop_reason
from core.decode.measure import bits, entropy, log_softmax, probabilities
from core.decode.past import Past
from core.decode.rules import Rules, rules_for
from core.decode.stages import apply_stages
from core.decode.sweep import Sweep, parse_sweep, spell_sweep, sweep_columns

__all__ = [
    "PRESETS",
    "BeamRun",
    "Candidate",
    "Exhaustive",
    "Past",
    "Replay",
    "Rules",
    "Stopped",
    "Sweep",
    "apply_stages",
    "beam_search",
    "bits",
    "candidates",
    "choose",
    "compare",
    "difference",
    "draw",
    "entropy",
    "exhaustive",
    "figures",
    "generate",
    "locate",
    "log_softmax",
    "parse_column",
    "parse_sweep",
    "probabilities",
    "provider_of",
    "replay",
    "rules_for",
    "run",
    "search",
    "seed_of",
    "spell",
    "spell_sweep",
    "stop_reason",
    "sweep_columns",
    "texts_of",
    "uniform",
]
