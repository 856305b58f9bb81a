"""What each click does to a reader's place in a run."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.settings import RunSpec, Settings
from ui.session import HISTORY, Place, act
from ui.view import View


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
                st.sampled_from(["do", "step", "id", "count", "temperature", "order", "top_p"]),
                inner,
            )
        ),
    ),
    st.sampled_from(["step", "goto", "force", "settings", "open", None]),
)
def test_no_event_breaks_anything(junk, kind):
    event = {**junk, "do": kind} if isinstance(junk, dict) else junk
    after = act(place(), event, None)
    assert 0 <= after.view.step < after.view.made <= after.spec.settings.max_new
