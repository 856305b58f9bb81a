"""Small tables and helpers for tests of comparisons."""

from core.compare_records import Question
from core.decode import compare, parse_column, uniform
from core.engine.toy import ToyEngine, parse_table

WORDS = ["a", "b", "c", "d", "<end>"]
ONCE = {
    "vocab": WORDS,
    "end": ["<end>"],
    "next": {"": [0.4, 0.3, 0.2, 0.1, 0], "*": [0, 0, 0, 0, 1]},
}
"""One word drawn from four, and the end."""
EVEN = {"vocab": WORDS, "end": [], "next": {"*": [0.4, 0.3, 0.2, 0.1, 0]}}
"""The same four words, over and over."""


def toy(table=ONCE):
    return ToyEngine(parse_table(table))


def ask(*lines, prompt="x", model="toy", **more):
    return Question(prompt, model, tuple(map(parse_column, lines)), **more)


def last(engine, question, **more):
    """The comparison when it is complete."""
    engines = engine if isinstance(engine, dict) else {question.model: engine}
    *_, found = compare(engines, question, **more)
    return found


def seed_within(low, high, step=0):
    """The first seed whose dice fall there."""
    return next(seed for seed in range(1, 10_000) if low <= uniform(seed, step) < high)
