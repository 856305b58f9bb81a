"""The only owner of session state, the address bar and the shared caches.

A reader's state is a small :class:`~ui.session.Place`; everything heavy is shared by all
readers and bounded: models in the store, forwards in their engine, choices in a memo here.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from weakref import WeakKeyDictionary

import streamlit as st

from core.decode.choose import choose
from core.decode.generate import OnStep, run, slim_choice
from core.decode.past import Past
from core.decode.rules import Rules, rules_for
from core.edits.spec import respelled
from core.engine.cost import Cost, cost
from core.engine.memory import ByteLRU
from core.engine.protocol import Engine
from core.engine.store import ModelStore
from core.faults import Fault
from core.lens import Lens, logit_lens
from core.recorded import RecordedEngine, recorded_engine
from core.settings import RunSpec, Settings
from core.trace import Capture, Choice, Forward, Generation, StepTrace
from ui import i18n, link
from ui.session import Place, act

_PLACE: Final = "place"
_WRITTEN: Final = "written"
_CHANGED: Final = "changed"
"""Set from a change of the place until the address bar says so."""
CHOICE_BYTES: Final = 64_000_000
"""For the slim choices remembered for all readers: a few numbers, and the ids they follow."""
LENS_BYTES: Final = 32_000_000
_NUMBERS: Final[WeakKeyDictionary[Engine, int]] = WeakKeyDictionary()
_COUNT: Final = itertools.count()
_NUMBERING: Final = threading.Lock()
IN_CLASS: Final = os.environ.get("TOKEN_BY_TOKEN_CLASS", "") not in ("", "0")
"""Started for a class: many readers on the network, who are not the owner of the machine."""


@st.cache_resource(show_spinner=False)
def store() -> ModelStore:
    """The models of this process. A class may not open files of the teacher's computer."""
    return ModelStore(local=not IN_CLASS)


def request(name: str, *, accept_terms: bool = False, retry: bool = False) -> None:
    """Have a model fetched and loaded; its state, or a sentence, shows in the sidebar."""
    try:
        store().request(name, accept_terms, retry=retry)
    except Fault as fault:
        st.session_state["refused"] = fault


@st.cache_resource(show_spinner=False)
def _choices() -> ByteLRU[Any, Choice]:
    return ByteLRU(CHOICE_BYTES)


@st.cache_resource(show_spinner=False)
def _lenses() -> ByteLRU[Any, Lens]:
    return ByteLRU(LENS_BYTES)


# ---------------------------------------------------------------- the reader's place


def place() -> Place:
    """Where this reader is; on the first call, what the link says."""
    if _PLACE not in st.session_state:
        lang = i18n.guess(st.context.locale)
        opened = link.decode(dict(st.query_params), lang)
        st.session_state[_PLACE] = Place(opened.spec, opened.view)
        st.session_state["notes"] = opened.notes
        st.session_state[_WRITTEN] = None
    found: Place = st.session_state[_PLACE]
    return found


def put(new: Place) -> None:
    st.session_state[_PLACE] = new
    st.session_state[_CHANGED] = True
    st.session_state["paused"] = False


def read_link() -> None:
    """Follow the address bar where the reader changed it (browser back, a pasted link)."""
    here = place()
    written = st.session_state.get(_WRITTEN)
    query = dict(st.query_params)
    # A quick click brings the address from before the last one: it must not undo either.
    if st.session_state.get(_CHANGED) or written is None or not query or query == written:
        return
    opened = link.decode(query, here.view.lang)
    put(Place(opened.spec, opened.view))
    st.session_state["notes"] = opened.notes


def write_link() -> None:
    """Put the reader's place into the address bar; not during a play, step by step.

    (Each change of the address is an entry of the browser's history.)
    """
    here = place()
    at_end = here.view.step == here.view.made - 1 and st.session_state.get("stop") is not None
    if st.session_state.get("playing") and not at_end:
        return
    query = link.encode(here.spec, here.view)
    if dict(st.query_params) != query:
        st.query_params.from_dict(query)
    st.session_state[_WRITTEN] = query
    st.session_state[_CHANGED] = False


def ask(**changes: Any) -> None:
    """Change the question: fields of RunSpec or of Settings. Raises Fault for illegal values."""
    here = place()
    if "model" in changes:
        changes["model"] = respelled(changes["model"])
    own = {k: v for k, v in changes.items() if k in Settings.__dataclass_fields__}
    rest = {k: v for k, v in changes.items() if k in RunSpec.__dataclass_fields__}
    settings = replace(here.spec.settings, **own)
    put(here.ask(replace(here.spec, **{"settings": settings, **rest})))


def look(**changes: Any) -> None:
    """Change the point of view: fields of ui.view.View."""
    here = place()
    put(replace(here, view=replace(here.view, **changes)))


def listener(key: str) -> Callable[[], None]:
    """The callback of a component mounted under ``key``: it carries out the "action" event."""

    def on_action() -> None:
        event = (st.session_state.get(key) or {}).get("action")
        told = event if isinstance(event, dict) else {}
        st.session_state["playing"] = told.get("playing") is True
        before = place()
        after = act(before, event, st.session_state.get("stop"))
        put(after)
        st.session_state["paused"] = told.get("do") == "pause"
        # The sidebar shows the settings too, and lies outside the fragment.
        if after.spec.settings != before.spec.settings:
            st.session_state["whole_page"] = True

    return on_action


# ---------------------------------------------------------------- engines and runs


def engine_for(spec: RunSpec) -> Engine | None:
    """Who answers: the model, or the stored run of it until it is ready, or nobody yet."""
    models = store()
    found = models.state(spec.model)
    if found.message == "on_disk":
        # Let go for other models, or not asked for yet.
        found = models.request(spec.model)
    if found.status == "ready":
        return models.engine(spec.model)
    recorded = recorded_engine()
    return recorded if spec.model == recorded.info.name else None


def number(engine: Engine) -> int:
    """What tells engines apart in a memo. Two files or folders of one name are two models, a
    table that was edited and opened again is a third, and a stored run is not the model."""
    with _NUMBERING:
        return _NUMBERS.setdefault(engine, next(_COUNT))


def remembered_choice(forward: Forward, settings: Settings, step: int, engine: Engine) -> Choice:
    """The slim choice, from the memo if anyone has made it before."""
    plain = replace(settings, forced=(), rolls=(), max_new=1)
    here = (step, settings.forced_at(step), settings.roll_at(step))
    key = (number(engine), forward.ids, forward.start, plain, *here)
    memo = _choices()
    found = memo.get(key)
    if found is None:
        found = slim_choice(forward, settings, step, rules_for(settings, engine.vocabulary))
        memo.put(key, found, 1000 + 8 * len(forward.ids))
    return found


def generation(
    engine: Engine, spec: RunSpec, made: int, *, on_step: OnStep | None = None
) -> Generation:
    """The first ``made`` steps of the run. Raises Fault; stops when the reader clicks again."""

    def decide(forward: Forward, settings: Settings, step: int, _: Rules) -> Choice:
        # A cancel point: Streamlit stops an outdated script at the next touch of its state.
        st.session_state.get(_PLACE)
        return remembered_choice(forward, settings, step, engine)

    found = cost_of(spec)
    # Maps that would crowd the memo are left out, or every click would compute the run again.
    capture = Capture(attention=found is None or found[1].attention_kept)
    return run(engine, spec, steps=made, decide=decide, on_step=on_step, capture=capture)


def in_full(trace: StepTrace, settings: Settings, engine: Engine) -> StepTrace:
    """The same step with the arrays of its stages."""
    past, rules = Past.at(trace.forward.ids, trace.index), rules_for(settings, engine.vocabulary)
    choice = choose(trace.forward.logits, settings, step=trace.index, past=past, rules=rules)
    return replace(trace, choice=choice)


def lens(engine: Engine, trace: StepTrace) -> Lens | None:
    """The logit lens of a step; ``None`` where the engine has no layers or no norm to read."""
    if engine.info.layers == 0:
        return None
    try:
        if isinstance(engine, RecordedEngine):
            return engine.lens(trace.forward, trace.choice.id)
        key = (number(engine), trace.forward.ids, trace.forward.start, trace.choice.id)
        memo = _lenses()
        found = memo.get(key)
        if found is None:
            found = logit_lens(engine, trace.forward, trace.choice.id)
            memo.put(key, found, 4096)
        return found
    except Fault:
        return None


def has_chat(model: str) -> bool:
    """Whether the model, once it can answer, has a chat template."""
    engine = _answering(model)
    return engine is not None and engine.info.chat


def controls_in(spec: RunSpec) -> tuple[str, ...]:
    """The control strings that the model would read in the prompt as it is typed."""
    engine = _answering(spec.model)
    if engine is None:
        return ()
    try:
        found = engine.vocabulary.control_spans(spec.prompt)
    except Fault:
        return ()
    return tuple(dict.fromkeys(spec.prompt[control.start : control.stop] for control in found))


def check_rules(settings: Settings) -> None:
    """Raises Fault for a pattern that the model, once it can answer, cannot follow."""
    engine = _answering(place().spec.model)
    if engine is not None:
        rules_for(settings, engine.vocabulary)


def cost_of(spec: RunSpec) -> tuple[int, Cost] | None:
    """(prompt tokens, what a run to the output limit will hold); ``None`` if nobody can say."""
    engine = _answering(spec.model)
    if engine is None:
        return None
    try:
        encoded = engine.vocabulary.read(spec.prompt, chat=spec.chat, literal=spec.literal)
    except Fault:
        return None
    return len(encoded.ids), cost(engine.info, len(encoded.ids), spec.settings.max_new)


def _answering(model: str) -> Engine | None:
    try:
        return engine_for(RunSpec(model=model))
    except Fault:
        return None


def show_recorded() -> None:
    """Go to the stored run."""
    here = place()
    put(here.ask(link.DEFAULT))
