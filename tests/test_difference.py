"""The first difference of two columns, and its reason, on tables worked out by hand.

From a .4, b .3, c .2, d .1 pure sampling takes c for u in [.7, .9). Of the top two, a and b,
the bar ends at 4/7 = .571, so u in [.4, .571) gives b without and a with that filter.
"""

from dataclasses import replace

import pytest

from core.compare_records import Difference
from core.decode import compare, difference, uniform
from core.decode.compare import UNREAD
from core.engine.toy import ToyEngine
from core.engine.toy_classics import classic
from core.faults import Fault
from tests.comparing import EVEN, ask, last, seed_within, toy

A, B, C, D = range(4)


def parts(engine, *lines, sample=0, **more):
    """(difference of the second column from the first, and of the first from the second)."""
    question = ask(*lines, **more)
    found = last(engine, question)
    engines = {"toy": engine}
    return (
        difference(found, engines, 1, sample=sample),
        difference(found, engines, 0, 1, sample=sample),
    )


def test_removed():
    seed = seed_within(0.7, 0.9)
    here, there = parts(toy(), f"sample,seed={seed}", "sample,top_k=2")
    assert here == Difference(0, "removed", B, C, "top_k", 2, removed_here=True)
    assert there == Difference(0, "removed", C, B, "top_k", 2, removed_here=False)


@pytest.mark.parametrize(
    ("filter", "stage", "value"),
    [
        ("top_p=0.7", "top_p", 0.7),
        ("min_p=0.6", "min_p", 0.6),
        ("temperature=0.9,top_p=0.6", "top_p", 0.6),
        ("banned=c", "banned", "c"),
        ("pattern=[abd]", "pattern", "[abd]"),
    ],
)
def test_the_stage_that_removed_it(filter, stage, value):
    seed = seed_within(0.72, 0.88)
    here, _ = parts(toy(), f"sample,seed={seed}", f"sample,{filter}")
    assert (here.reason, here.there, here.stage, here.parameter) == ("removed", C, stage, value)
    assert here.removed_here


def test_moved():
    seed = seed_within(0.4, 0.571)
    here, there = parts(toy(), f"sample,seed={seed}", "sample,top_k=2")
    assert here == Difference(0, "moved", A, B, "top_k", 2, removed_here=True)
    assert there == Difference(0, "moved", B, A, "top_k", 2, removed_here=False)


def test_moved_by_the_temperature():
    # .4² … .1² over .3: .533, .3, .133, .033
    seed = seed_within(0.41, 0.53)
    here, _ = parts(toy(), f"sample,seed={seed}", "sample,temperature=0.5")
    assert here == Difference(0, "moved", A, B, "temperature", 0.5)


def test_not_drawn():
    seed = seed_within(0.4, 0.7)
    here, there = parts(toy(), "greedy", f"sample,seed={seed}")
    assert here == Difference(0, "not_drawn", B, A, removed_here=False)
    assert there == Difference(0, "not_drawn", A, B, removed_here=True)
    zero, _ = parts(toy(), f"sample,seed={seed}", "sample,temperature=0")
    assert zero == Difference(0, "not_drawn", A, B, removed_here=True)


def test_greedy_is_not_held_back_by_its_filters():
    seed = seed_within(0.7, 0.9)
    here, _ = parts(toy(), f"sample,seed={seed}", "greedy,top_k=1")
    assert here.reason == "not_drawn"


def test_what_a_rule_of_greedy_removed():
    here, there = parts(toy(), "greedy", "greedy,banned=a")
    assert here == Difference(0, "removed", B, A, "banned", "a", removed_here=True)
    assert there == Difference(0, "removed", A, B, "banned", "a", removed_here=False)


def test_reordered():
    # The prompt has a: ln .4 · 3 = -2.75 is below ln .3 = -1.20.
    here, there = parts(toy(), "greedy", "greedy,repetition_penalty=3", prompt="a")
    assert here == Difference(0, "reordered", B, A, "repetition_penalty", 3.0, removed_here=True)
    assert there == Difference(0, "reordered", A, B, "repetition_penalty", 3.0, removed_here=False)


def test_other_dice():
    lines = (f"sample,seed={seed_within(0, 0.4)}", f"sample,seed={seed_within(0.4, 0.7)}")
    here, there = parts(toy(), *lines, dice="own")
    assert here == Difference(0, "other_dice", B, A)
    assert there == Difference(0, "other_dice", A, B)
    assert parts(toy(), *lines) == (here, there)  # a seed that is named is kept
    same, _ = parts(toy(), lines[0], "sample")
    assert same == Difference(None, "same", None, None)


def test_forced():
    here, there = parts(toy(), "greedy", "greedy,force=0:3")
    assert here == Difference(0, "forced", D, A, removed_here=True)
    assert there == Difference(0, "forced", A, D, removed_here=False)


def test_search():
    engine = ToyEngine(classic("beam_beats_greedy"))
    here, there = parts(engine, "greedy", "beam,beams=2")
    assert here == Difference(0, "search", 1, 0, removed_here=True)
    assert there == Difference(0, "search", 0, 1, removed_here=False)


def test_one_has_ended():
    table = {"vocab": ["a", "b"], "end": [], "next": {"*": [1, 0]}}
    here, there = parts(toy(table), "greedy", "greedy,no_repeat_ngram=1")
    assert here == Difference(1, "one_ended", None, 0, removed_here=True)
    assert there == Difference(1, "one_ended", 0, None, removed_here=False)


def test_they_part_later():
    seed = next(
        seed for seed in range(1, 5000) if uniform(seed, 0) < 0.4 and 0.72 < uniform(seed, 1) < 0.88
    )
    here, _ = parts(toy(EVEN), f"sample,seed={seed}", "sample,top_k=2", max_new=4)
    assert here == Difference(1, "removed", B, C, "top_k", 2)


def test_the_same_text():
    for lines in (("greedy", "greedy,top_k=3"), ("sample,seed=2", "sample,seed=2,top_k=4")):
        here, there = parts(toy(EVEN), *lines)
        assert here == there == Difference(None, "same", None, None)


def test_still_being_written():
    engines = {"toy": toy(EVEN)}
    question = ask("greedy", "greedy,top_k=2", "greedy,force=1:2", max_new=4)
    first, second, *_ = compare(engines, question)
    assert difference(first, engines, 2).reason == "same"
    assert difference(second, engines, 2).reason == "forced"
    assert difference(second, engines, 1).step is None


def test_other_samples_are_read_once_more():
    question = ask("sample,seed=1", "sample,top_k=2", samples=40)
    engine = toy()
    found = last(engine, question)
    seen = set()
    for sample in range(40):
        mine, other = (w.texts[sample].choices[0] for w in found.columns)
        here = difference(found, {"toy": engine}, 1, sample=sample)
        u = mine.u
        assert u == other.u
        reason = "same" if u < 0.4 or 4 / 7 <= u < 0.7 else "moved" if u < 4 / 7 else "removed"
        assert here.reason == reason
        seen.add(reason)
    assert seen == {"same", "moved", "removed"}


def test_every_pair_is_noted_as_it_happens():
    seed = seed_within(0.72, 0.88)
    found = last(toy(), ask(f"sample,seed={seed}", "greedy", "sample,top_k=2", "beam"))
    assert [sorted(dict(w.parted)) for w in found.columns] == [[1, 2], [0, 2], [0, 1], []]
    assert dict(found.columns[2].parted)[1] == Difference(0, "not_drawn", B, A, removed_here=False)


def test_columns_without_a_text():
    question = replace(ask("greedy", "greedy"), columns=(UNREAD, *ask("greedy").columns))
    found = last(toy(), question, failed={0: Fault("column_empty", allowed="")})
    assert difference(found, {}, 1).reason == "same"


def test_between_two_models_bytes_count():
    other = {
        "vocab": ["<end>", "c", "b", "a"],
        "end": ["<end>"],
        "next": {"": [0, 0, 0, 1], "a": [0, 0, 1, 0], "*": [1, 0, 0, 0]},
    }
    first = {
        "vocab": ["a", "b", "c", "<end>"],
        "end": ["<end>"],
        "next": {"": [1, 0, 0, 0], "a": [0, 0, 1, 0], "*": [0, 0, 0, 1]},
    }
    engines = {"toy": toy(first), "other": toy(other)}
    found = last(engines, ask("greedy", "greedy,model=other"))
    assert difference(found, engines, 1) == Difference(1, "other_model", 2, 2)
    assert difference(found, engines, 0, 1) == Difference(1, "other_model", 2, 2)
    same = {"toy": toy(first), "other": toy(first)}
    assert difference(last(same, ask("greedy", "greedy,model=other")), same, 1).step is None


def test_the_reason_holds_on_a_transformer(tiny):
    """Where a stage is said to have removed a token, that stage's own record says so too."""
    lines = ("sample,seed=3", "sample,top_k=3", "sample,top_p=0.2", "sample,min_p=0.9")
    question = ask(*lines, prompt="the", model="tiny", max_new=6)
    found = last(tiny, question)
    for place, name in ((1, "top_k"), (2, "top_p"), (3, "min_p")):
        here = difference(found, {"tiny": tiny}, place)
        assert here.reason in ("removed", "moved")
        assert here.stage == name
        ids = [w.texts[0].ids for w in (found.columns[place], found.columns[0])]
        assert ids[0][: here.step] == ids[1][: here.step]
        assert (here.here, here.there) == (ids[0][here.step], ids[1][here.step])
