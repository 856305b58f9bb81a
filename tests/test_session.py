"""What each click does to a reader's place in a run."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.settings import MAX_SEED, RunSpec, Settings
from ui.branches import BRANCHES_CAP, NAME_CAP, read
from ui.session import HISTORY, Place, act
from ui.view import View

KEYS = ["do", "step", "id", "count", "temperature", "order", "top_p", "seed", "branch", "name"]
KEYS += ["branches"]
DOES = ["step", "back", "goto", "force", "restart", "settings", "reroll", "seed", "keep", "open"]
DOES += ["rename", "drop", "drop_all", "compare"]


def place(made=3, step=2, **settings):
    return Place(RunSpec(prompt="x", settings=Settings(**settings)), View(made=made, step=step))


def test_step_goes_through_the_past_before_it_makes_more():
    here = act(place(made=3, step=1), {"do": "step"}, None)
    assert (here.view.made, here.view.step) == (3, 2)
    here = act(here, {"do": "step"}, None)
    assert (here.view.made, here.view.step) == (4, 3)


def test_step_makes_nothing_after_the_stop_or_beyond_the_limit():
    assert act(place(), {"do": "step"}, "end_token") == place()
    full = place(made=5, step=4, max_new=5)
    assert act(full, {"do": "step"}, None) == full
    assert act(place(max_new=5), {"do": "step", "count": 8}, None).view.made == 5


@given(st.integers(1, 20), st.integers(0, 19))
def test_back_then_forward_is_the_identity(made, step):
    here = place(made=made, step=min(max(step, 1), made - 1))
    if here.view.step == 0:
        assert act(here, {"do": "back"}, None) == here
    else:
        assert act(act(here, {"do": "back"}, None), {"do": "step"}, None) == here


def test_force_forks_and_back_undoes_it():
    before = place(made=5, step=1, forced=((0, 9), (3, 4)))
    forked = act(before, {"do": "force", "step": 1, "id": 42}, None)
    assert forked.spec.settings.forced == ((0, 9), (1, 42))
    assert (forked.view.made, forked.view.step) == (2, 1)
    undone = act(forked, {"do": "back"}, None)
    assert undone == before


def test_back_away_from_a_fork_only_moves():
    forked = act(place(made=3, step=1), {"do": "force", "step": 1, "id": 42}, None)
    further = act(forked, {"do": "step"}, None)
    assert act(further, {"do": "back"}, None) == replace(forked, view=replace(forked.view, made=3))


def test_forks_are_remembered_up_to_a_bound():
    here = place(made=1, step=0)
    for token in range(HISTORY + 20):
        here = act(here, {"do": "force", "step": 0, "id": token}, None)
    assert len(here.history) == HISTORY


def test_a_new_text_starts_anew_and_a_new_setting_does_not():
    here = place(made=5, step=3, forced=((1, 2),))
    other = here.ask(replace(here.spec, prompt="y"))
    assert (other.view.made, other.view.step, other.spec.settings.forced) == (1, 0, ())
    hot = act(here, {"do": "settings", "temperature": 1.5, "top_k": 3}, None)
    assert (hot.spec.settings.temperature, hot.spec.settings.top_k) == (1.5, 3)
    assert (hot.view.made, hot.view.step, hot.spec.settings.forced) == (5, 3, ((1, 2),))
    short = here.ask(replace(here.spec, settings=replace(here.spec.settings, max_new=2)))
    assert (short.view.made, short.view.step) == (2, 1)


def test_a_re_roll_forks_like_a_forced_token():
    before = place(made=5, step=1, forced=((0, 9), (1, 4), (3, 4)), rolls=((0, 1), (1, 2), (4, 7)))
    rolled = act(before, {"do": "reroll", "step": 1}, None)
    assert rolled.spec.settings.forced == ((0, 9),)
    assert rolled.spec.settings.rolls == ((0, 1), (1, 3))
    assert (rolled.view.made, rolled.view.step) == (2, 1)
    again = act(rolled, {"do": "reroll", "step": 1}, None)
    assert again.spec.settings.roll_at(1) == 4
    assert act(again, {"do": "back"}, None) == rolled
    assert act(rolled, {"do": "back"}, None) == before


def test_dice_that_are_not_thrown_are_not_thrown_again():
    for here in (place(strategy="greedy"), place(temperature=0), place()):
        assert act(here, {"do": "reroll", "step": 9}, None) == here
    greedy = place(strategy="greedy")
    assert act(greedy, {"do": "reroll", "step": 0}, None) == greedy


def test_a_new_seed_throws_every_dice_once():
    here = place(made=3, step=2, rolls=((1, 4),), forced=((0, 3),))
    large = act(here, {"do": "seed", "seed": str(MAX_SEED)}, None)
    assert (large.spec.settings.seed, large.spec.settings.rolls) == (MAX_SEED, ())
    assert large.spec.settings.forced == ((0, 3),)
    assert (large.view.made, large.view.step) == (3, 2)
    for bad in ("-1", str(MAX_SEED + 1), "x", "", None, 7.5, 7, ["7"]):
        assert act(here, {"do": "seed", "seed": bad}, None) == here


# --- branches


def paths(here):
    return [(b.name, b.forced, b.rolls, b.made) for b in read(here.view.branches)]


def test_every_fork_keeps_the_path_that_it_leaves():
    here = act(place(made=5, step=4), {"do": "force", "step": 2, "id": 7}, None)
    assert paths(here) == [("A", (), (), 5)]
    here = act(here, {"do": "reroll", "step": 0}, None)
    assert paths(here) == [("A", (), (), 5), ("B", ((2, 7),), (), 3)]
    assert paths(act(here, {"do": "back"}, None)) == [("A", (), (), 5)]
    restarted = act(here, {"do": "restart"}, None)
    assert paths(restarted) == [*paths(here), ("C", (), ((0, 1),), 1)]
    assert paths(act(place(made=4), {"do": "restart"}, None)) == []


def test_back_spares_what_was_done_to_other_branches():
    here = act(place(made=5, step=4), {"do": "force", "step": 2, "id": 7}, None)
    here = act(here, {"do": "force", "step": 2, "id": 8}, None)
    here = act(here, {"do": "rename", "branch": 0, "name": "mine"}, None)
    back = act(here, {"do": "back"}, None)
    assert paths(back) == [("mine", (), (), 5)]


def test_a_branch_is_opened_and_the_path_in_view_kept():
    forked = act(place(made=5, step=4), {"do": "force", "step": 2, "id": 7}, None)
    opened = act(forked, {"do": "open", "branch": 0, "step": 3}, None)
    assert (opened.spec.settings.forced, opened.view.made, opened.view.step) == ((), 5, 3)
    assert paths(opened) == [("A", (), (), 5), ("B", ((2, 7),), (), 3)]
    further = act(replace(opened, view=replace(opened.view, step=4)), {"do": "step"}, None)
    other = act(further, {"do": "open", "branch": 1}, None)
    assert (other.spec.settings.forced, other.view.made, other.view.step) == (((2, 7),), 3, 0)
    assert paths(other) == [("A", (), (), 6), ("B", ((2, 7),), (), 3)]
    seeded = act(other, {"do": "seed", "seed": "5"}, None)
    first = act(seeded, {"do": "open", "branch": 0}, None)
    assert first.spec.settings.seed == 0
    assert read(first.view.branches)[2].seed == 5


def test_branches_are_named_and_dropped_and_belong_to_their_text():
    here = act(act(place(), {"do": "keep"}, None), {"do": "force", "step": 0, "id": 1}, None)
    assert [name for name, *_ in paths(here)] == ["A"]
    here = act(here, {"do": "keep"}, None)
    assert [name for name, *_ in paths(here)] == ["A", "B"]
    named = act(here, {"do": "rename", "branch": 1, "name": " <b>x</b>;\n\x00 y " + "z" * 99}, None)
    assert paths(named)[1][0] == ("<b>x</b>; y " + "z" * 99)[:NAME_CAP]
    assert [name for name, *_ in paths(act(named, {"do": "drop", "branch": 0}, None))] == [
        paths(named)[1][0]
    ]
    assert paths(act(named, {"do": "drop_all"}, None)) == []
    assert named.ask(replace(named.spec, prompt="y")).view.branches == ()
    for nonsense in (
        {"do": "drop", "branch": 9},
        {"do": "drop", "branch": -1},
        {"do": "open", "branch": "x"},
        {"do": "open"},
        {"do": "rename", "branch": 0, "name": 3},
        {"do": "rename", "branch": 99, "name": "x"},
        {"do": "compare", "branches": [7]},
        {"do": "compare", "branches": 1},
    ):
        assert act(named, nonsense, None) == named


def test_the_oldest_branch_without_a_name_of_its_own_makes_room():
    here = act(place(made=2, step=0), {"do": "keep"}, None)
    here = act(here, {"do": "rename", "branch": 0, "name": "mine"}, None)
    for token in range(BRANCHES_CAP + 3):
        here = act(here, {"do": "force", "step": 0, "id": token}, None)
    kept = paths(here)
    assert len(kept) == BRANCHES_CAP
    assert kept[0][0] == "mine"
    assert kept[-1][1] == ((0, BRANCHES_CAP + 1),)
    assert len({name for name, *_ in kept}) == BRANCHES_CAP


def test_branches_become_columns_of_the_comparison():
    here = place(made=5, step=4, top_p=0.9, seed=3)
    here = act(here, {"do": "force", "step": 2, "id": 345}, None)
    here = act(here, {"do": "reroll", "step": 1}, None)
    columns = act(here, {"do": "compare", "branches": [1, 0, 1]}, None).view.columns
    assert columns == (
        "sample,top_p=0.9,seed=3,roll=1:1",
        "sample,top_p=0.9,seed=3,force=2:345",
        "sample,top_p=0.9,seed=3",
    )


def test_every_stage_can_be_set_from_the_browser():
    event = {
        "do": "settings", "typical_p": 0.5, "repetition_penalty": 1.3, "presence_penalty": 1,
        "frequency_penalty": -0.5, "no_repeat_ngram": 3, "banned": ["a", "b"], "pattern": "x+",
        "order": ["typical_p", "top_p"],
    }  # fmt: skip
    found = act(place(made=3, step=2), event, None)
    assert found.spec.settings == Settings(
        typical_p=0.5, repetition_penalty=1.3, presence_penalty=1.0, frequency_penalty=-0.5,
        no_repeat_ngram=3, banned=("a", "b"), pattern="x+",
        order=("typical_p", "top_p", "temperature", "top_k", "min_p"),
    )  # fmt: skip
    assert (found.view.made, found.view.step) == (3, 2)
    numbers = ("typical_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
    off = dict.fromkeys([*numbers, "no_repeat_ngram"])
    off |= {"do": "settings", "banned": [], "pattern": ""}
    assert act(found, off, None).spec.settings == Settings(order=found.spec.settings.order)


@pytest.mark.parametrize(
    "wrong",
    [
        {"typical_p": 0}, {"typical_p": "0.5"}, {"repetition_penalty": 0},
        {"presence_penalty": 11}, {"frequency_penalty": math.nan}, {"no_repeat_ngram": 2.5},
        {"no_repeat_ngram": True}, {"banned": "abc"}, {"banned": [1]}, {"banned": None},
        {"banned": ["x" * 501]}, {"pattern": None}, {"pattern": ["a"]}, {"pattern": "x" * 501},
        {"order": ["banned"]}, {"order": "top_p"}, {"order": [["top_p"]]}, {"temperature": None},
    ],
)  # fmt: skip
def test_a_wrong_value_from_the_browser_changes_nothing(wrong):
    here = place()
    assert act(here, {"do": "settings", "top_k": 3, **wrong}, None) == here


def test_compared_branches_of_different_seeds_keep_their_own_dice():
    here = act(place(seed=3), {"do": "keep"}, None)
    here = act(here, {"do": "seed", "seed": "4"}, None)
    compared = act(here, {"do": "compare", "branches": [0]}, None).view
    assert (compared.columns, compared.dice) == (("sample,seed=4", "sample,seed=3"), "")


def test_a_seed_of_0_is_kept_beside_others():
    here = act(place(seed=0), {"do": "keep"}, None)
    here = act(here, {"do": "seed", "seed": "4"}, None)
    compared = act(here, {"do": "compare", "branches": [0]}, None).view
    assert (compared.columns, compared.dice) == (("sample,seed=4", "sample,seed=0"), "")


def test_restart_keeps_the_settings_and_drops_what_was_forced():
    here = act(place(temperature=0.5, forced=((1, 2),)), {"do": "restart"}, None)
    assert here.spec.settings == Settings(temperature=0.5)
    assert (here.view.made, here.view.step) == (1, 0)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(KEYS),
                inner,
            )
        ),
    ),
    st.sampled_from([*DOES, "magic", None]),
)
def test_no_event_breaks_anything(junk, kind):
    event = {**junk, "do": kind} if isinstance(junk, dict) else junk
    after = act(act(place(), {"do": "force", "step": 0, "id": 1}, None), event, None)
    assert 0 <= after.view.step < after.view.made <= after.spec.settings.max_new
