"""How a tokenizer got from a text to its tokens, played again step by step.

:func:`cut` shows what comes first (normalisation, and the cut into words), :class:`Rules`
the table that the tokenizer learned, :func:`replay` and :func:`best_path` what it does with
one word. One law holds for all of them: the end is what the tokenizer itself says.
"""

from core.bpe.cut import Cutting, Word, cut
from core.bpe.merges import Merge, Pair, Replay, replay
from core.bpe.rules import Kind, Rules, rules_of
from core.bpe.story import MOST_SYMBOLS, Story, story
from core.bpe.unigram import Lattice, Piece, best_path

__all__ = [
    "MOST_SYMBOLS",
    "Cutting",
    "Kind",
    "Lattice",
    "Merge",
    "Pair",
    "Piece",
    "Replay",
    "Rules",
    "Story",
    "Word",
    "best_path",
    "cut",
    "replay",
    "rules_of",
    "story",
]
