"""The address bar: same link = same run; nothing in it can break the page."""

import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.settings import MAX_SEED, STAGE_NAMES, RunSpec, Settings
from core.text.reader import repair
from ui.branches import Branch, spell
from ui.link import DEFAULT, PARAMETERS, STEPS_CAP, decode, encode
from ui.view import (
    CELLS,
    COLUMNS_CAP,
    DRAWS,
    KINDS,
    MODEL_CAP,
    ORDERS,
    ROUNDS_CAP,
    SAMPLES_CAP,
    TABLE_CAP,
    TEXT_CAP,
    WORDS_CAP,
    View,
)

counts = st.lists(st.tuples(st.integers(0, 1023), st.integers(1, 2**31)), max_size=20)
lines = st.text(st.characters(exclude_characters="\n"), min_size=1, max_size=20).map(repair)
few = st.lists(st.tuples(st.integers(0, 1023), st.integers(1, 2**31)), max_size=5).map(tuple)
branches = st.builds(
    Branch,
    name=st.text(max_size=40).map(repair),
    forced=few,
    rolls=few,
    seed=st.integers(0, MAX_SEED),
    made=st.integers(1, 1024),
).map(spell)
penalties = st.none() | st.floats(-10, 10)
settings = st.builds(
    Settings,
    typical_p=st.none() | st.floats(1e-6, 1),
    repetition_penalty=st.none() | st.floats(0.01, 10),
    presence_penalty=penalties,
    frequency_penalty=penalties,
    no_repeat_ngram=st.none() | st.integers(1, 100),
    banned=st.lists(lines, max_size=5).map(tuple),
    pattern=st.text(max_size=30).map(repair),
    rolls=counts.map(tuple),
    strategy=st.sampled_from(["greedy", "sample"]),
    temperature=st.floats(0, 100),
    top_k=st.none() | st.integers(1, 2**31),
    top_p=st.none() | st.floats(1e-6, 1),
    min_p=st.none() | st.floats(0, 1),
    order=st.permutations(STAGE_NAMES).map(tuple),
    seed=st.integers(0, MAX_SEED),
    max_new=st.integers(1, STEPS_CAP),
    forced=st.lists(st.tuples(st.integers(0, 1023), st.integers(0, 2**31)), max_size=20).map(tuple),
)
texts = st.text(max_size=TEXT_CAP).map(repair)
specs = st.builds(
    RunSpec,
    model=st.sampled_from(["smollm2-135m", "gemma3-270m", "org/name"]),
    prompt=texts,
    settings=settings,
    literal=st.booleans(),
    chat=st.booleans(),
)


@st.composite
def places(draw):
    spec = draw(specs)
    made = draw(st.integers(1, spec.settings.max_new))
    view = View(
        lang=draw(st.sampled_from(["en", "zh"])),
        made=made,
        step=draw(st.integers(0, made - 1)),
        own=draw(texts),
        layer=draw(st.integers(-1, 200)),
        head=draw(st.integers(-1, 200)),
        at=draw(st.integers(-1, 9000)),
        key=draw(st.integers(-1, 9000)),
        off=tuple(
            sorted(draw(st.sets(st.tuples(st.integers(0, 99), st.integers(-1, 99)), max_size=64)))
        ),
        why=draw(st.sampled_from(["", "gradient", "integrated"])),
        pair=draw(st.integers(-1, 200)),
        words=draw(st.text(max_size=WORDS_CAP).map(repair)),
        other=draw(st.text(max_size=MODEL_CAP).map(repair)),
        order=draw(st.sampled_from(["", *ORDERS])),
        cell=draw(st.sampled_from(["", *CELLS])),
        beams=draw(st.integers(1, 256)),
        alpha=draw(st.floats(-10, 10)),
        rule=draw(st.sampled_from(["full", "best"])),
        nbest=draw(st.integers(0, 256)),
        kind=draw(st.sampled_from(["", *KINDS])),
        groups=draw(st.integers(1, 256)),
        diversity=draw(st.floats(0, 100)),
        node=draw(st.tuples(st.integers(-1, 99), st.integers(-1, 99))),
        table=draw(st.text(max_size=TABLE_CAP).map(repair)),
        columns=draw(st.lists(lines, max_size=COLUMNS_CAP).map(tuple)),
        samples=draw(st.integers(1, SAMPLES_CAP)),
        dice=draw(st.sampled_from(["", "own"])),
        reference=draw(st.integers(0, COLUMNS_CAP - 1)),
        sample=draw(st.integers(0, SAMPLES_CAP - 1)),
        sweep=draw(st.text(max_size=50).map(repair)),
        branches=draw(st.lists(branches, max_size=4, unique=True).map(tuple)),
        draws=draw(
            st.just((0, 0)) | st.tuples(st.sampled_from(DRAWS), st.integers(0, ROUNDS_CAP - 1))
        ),
    )
    return spec, view


@given(places())
def test_a_link_opens_the_same_run_at_the_same_step(place):
    spec, view = place
    opened = decode(encode(spec, view), "en")
    assert (opened.spec, opened.view, opened.notes) == (spec, view, ())


@given(st.dictionaries(st.sampled_from(PARAMETERS) | st.text(max_size=8), st.text(max_size=60)))
def test_any_link_opens(query):
    opened = decode(query, "zh")
    assert 0 <= opened.view.step < opened.view.made <= opened.spec.settings.max_new
    assert set(opened.notes) <= set(PARAMETERS)
    opened.spec.prompt.encode()


def test_the_default_run_needs_no_parameters_but_the_language():
    assert encode(DEFAULT, View(lang="zh")) == {"lang": "zh"}
    assert decode({}, "en").spec == DEFAULT


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("t", "nan"),
        ("t", "inf"),
        ("t", "-1"),
        ("t", "hot"),
        ("k", "0"),
        ("k", "2.5"),
        ("p", "0"),
        ("p", "1.01"),
        ("m", "-0.1"),
        ("order", "top_k,top_k"),
        ("order", "temperature,top_k,top_p,top_p"),
        ("seed", "-1"),
        ("seed", str(MAX_SEED + 1)),
        ("max", "0"),
        ("max", str(STEPS_CAP + 1)),
        ("force", "1"),
        ("force", "a:b"),
        ("strategy", "beam me up"),
        ("made", "many"),
        ("literal", "yes"),
        ("layer", "-2"),
        ("head", "first"),
        ("at", "1e9"),
        ("key", "-3"),
        ("off", "1"),
        ("off", "-1:2"),
        ("off", "1:2:3"),
        ("off", ",".join(f"{n}:0" for n in range(100))),
        ("why", "magic"),
        ("pair", "-3"),
        ("cell", "attention_part"),
        ("place", "upside down"),
        ("branches", "no branch"),
        ("branches", "0;0;;;too short a path"),
        ("branches", "3;0;1:x;;"),
        ("branches", "3;-1;;;"),
        ("branches", "\n".join(f"{n};0;;;" for n in range(1, 15))),
        ("draws", "7"),
        ("draws", "1000:-1"),
    ],
)
def test_a_bad_value_falls_back_and_is_named(name, value):
    opened = decode({name: value, "seed": "7"} if name != "seed" else {name: value}, "en")
    assert opened.notes == (name,)
    seed = 0 if name == "seed" else 7
    assert opened.spec == replace(DEFAULT, settings=replace(DEFAULT.settings, seed=seed))


def test_a_long_prompt_is_capped_and_a_surrogate_replaced():
    spec = RunSpec(prompt="é" * (TEXT_CAP + 50))
    assert encode(spec, View())["prompt"] == "é" * TEXT_CAP
    assert encode(RunSpec(prompt="a\ud800b"), View())["prompt"] == "a\ufffdb"


def test_every_parameter_is_short_and_plain():
    assert all(set(name) <= set(string.ascii_lowercase) for name in PARAMETERS)
