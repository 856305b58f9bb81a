"""A strategy as one line, and back."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.compare_records import Column
from core.decode.columns import BEAM_KEYS, PRESETS, SAMPLE_KEYS, keys_of, parse_column, spell
from core.faults import Fault
from core.settings import BEAM_KINDS, MAX_SEED, STAGE_NAMES, STOP_RULES, BeamSettings, Settings

LINES = [
    ("greedy", Column(Settings(strategy="greedy"))),
    ("sample", Column(Settings())),
    ("sample,top_p=0.9,seed=1", Column(Settings(top_p=0.9, seed=1))),
    ("sample,seed=0", Column(Settings(), seeded=True)),
    ("beam,kind=sampled,seed=0", Column(BeamSettings(kind="sampled"), seeded=True)),
    ("beam", Column(BeamSettings())),
    (
        "beam,beams=8,length_penalty=-0.5,stop=full,nbest=2",
        Column(BeamSettings(width=8, length_penalty=-0.5, stop="full", nbest=2)),
    ),
    (
        "beam,kind=diverse,groups=4,diversity=1.5,model=gemma3-270m",
        Column(BeamSettings(kind="diverse", groups=4, diversity=1.5), "gemma3-270m"),
    ),
    ("sample,top_k=1,order=top_p", Column(Settings(top_k=1, order=("top_p",)))),
    (
        "sample,order=min_p+temperature+top_p",
        Column(Settings(order=("min_p", "temperature", "top_p"))),
    ),
    (
        "sample,banned= x,banned=a%2Cb%0Ac%25".replace("= x", "=%20x"),
        Column(Settings(banned=(" x", "a,b\nc%"))),
    ),
    ("sample,banned=off", Column(Settings(banned=("off",)))),
    ("sample,pattern=off", Column(Settings(pattern="off"))),
    ("greedy,pattern=[a-z]{1%2C3}=\\d", Column(Settings("greedy", pattern=r"[a-z]{1,3}=\d"))),
    ("sample,roll=2:1,force=0:7+3:9", Column(Settings(rolls=((2, 1),), forced=((0, 7), (3, 9))))),
]


@pytest.mark.parametrize(("line", "column"), LINES)
def test_lines(line, column):
    assert parse_column(line) == column
    assert spell(column) == line


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        (" Greedy ", "greedy"),
        ("sample, top-p = 0.90 ,, seed=01", "sample,top_p=0.9,seed=1"),
        ("sample,temperature=1,top_k=off,seed=off", "sample"),
        ("beam,width=5,length-penalty=1.0", "beam,beams=5,length_penalty=1"),
        ("beam,beams=4,stop=best,kind=plain", "beam"),
        ("sample,typical=0.2,order=top-p>temperature", "sample,typical_p=0.2,order=top_p"),
        ("sample,order=temperature%2Ctop_k", "sample"),
        ("sample,banned=%C3%A9", "sample,banned=é"),
    ],
)
def test_one_spelling(typed, canonical):
    assert spell(parse_column(typed)) == canonical


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
some = st.none()
settings = st.builds(
    Settings,
    strategy=st.sampled_from(["greedy", "sample"]),
    temperature=st.floats(0, 100),
    top_k=some | st.integers(1, 2**31),
    top_p=some | st.floats(0, 1, exclude_min=True),
    min_p=some | st.floats(0, 1),
    typical_p=some | st.floats(0, 1, exclude_min=True),
    repetition_penalty=some | st.floats(0.01, 10),
    presence_penalty=some | st.floats(-10, 10),
    frequency_penalty=some | st.floats(-10, 10),
    no_repeat_ngram=some | st.integers(1, 100),
    banned=st.lists(texts, max_size=4).map(tuple),
    pattern=st.just("") | texts,
    order=st.permutations(STAGE_NAMES).map(tuple),
    seed=st.integers(0, MAX_SEED),
    rolls=st.lists(st.tuples(st.integers(0, 1023), st.integers(0, 9)), max_size=3).map(tuple),
    forced=st.lists(st.tuples(st.integers(0, 1023), st.integers(0, 9)), max_size=3).map(tuple),
)
beams = st.builds(
    BeamSettings,
    width=st.sampled_from([2, 4, 16]),
    length_penalty=st.floats(-10, 10),
    stop=st.sampled_from(STOP_RULES),
    nbest=some | st.integers(1, 2),
    kind=st.sampled_from(BEAM_KINDS),
    temperature=st.floats(0, 100, exclude_min=True),
    seed=st.integers(0, MAX_SEED),
    groups=st.sampled_from([1, 2]),
    diversity=st.floats(0, 100),
)


@given(st.builds(Column, settings | beams, st.none() | texts))
def test_every_column_survives_its_line(column):
    line = spell(column)
    assert parse_column(line) == column
    assert "\n" not in line
    assert spell(parse_column(line)) == line


@given(
    st.text(max_size=60)
    | st.builds("sample,{}={}".format, st.sampled_from(keys_of("sample")), texts)
)
def test_any_text_is_a_column_or_a_fault(text):
    try:
        column = parse_column(text)
    except Fault:
        return
    assert parse_column(spell(column)) == column


def test_presets_are_legal_and_different():
    assert len({spell(column) for column in PRESETS.values()}) == len(PRESETS)
    assert {"greedy", "beam", "pure", "top_k", "top_p", "min_p", "typical"} <= PRESETS.keys()
    assert PRESETS["top_p"] == Column(Settings(top_p=0.9))


BAD = [
    ("", "A strategy begins with its name; write one of: greedy, sample, beam."),
    (" ,top_p=1", "A strategy begins with its name"),
    ("topk", "The strategy 'topk' is not known; choose one of: greedy, sample, beam."),
    ("sample,beams=3", "'beams' is no setting of sample; choose one of: temperature, top_k"),
    ("beam,top_k=3", "'top_k' is no setting of beam; choose one of: beams, length_penalty"),
    ("greedy,max_new=3", "'max_new' is no setting of greedy"),
    ("sample,top_p", "The setting top_p has no value; write top_p=VALUE, or leave it out."),
    ("sample,top_p= ", "The setting top_p has no value"),
    ("sample,seed=1,seed=1", "The setting seed is given twice in one strategy"),
    ("sample,top_p=much", "top-p must be a number, but it is 'much'"),
    ("sample,top_p=nan", "top-p is nan, but it must be above 0 and at most 1"),
    ("sample,top_p=1.5", "top-p is 1.5, but"),
    ("sample,top_k=2.5", "top-k must be a whole number, but it is '2.5'"),
    ("sample,order=heat", "The order of the filters is 'heat', but"),
    ("sample,force=x", "A forced choice is written STEP:ID"),
    ("sample,force=0:" + "9" * 5000, "A forced choice is written STEP:ID"),
    ("sample,roll=0:-3", "A step whose dice are thrown again is written STEP:COUNT"),
    ("beam,stop=soon", "The stopping rule 'soon' is not known; choose one of: full, best."),
    ("beam,kind=wild", "The kind of beam search 'wild' is not known"),
    ("beam,beams=2,nbest=3", "nbest is 3, but it must be from 1 to 2"),
    ("beam,kind=diverse,groups=3", "4 beams cannot be dealt out evenly to 3 groups"),
]


@pytest.mark.parametrize(("line", "said"), BAD)
def test_faults(line, said):
    with pytest.raises(Fault) as caught:
        parse_column(line)
    assert str(caught.value).startswith(said)


def test_every_setting_has_a_key():
    sample = {field.name for field in fields(Settings)} - {"strategy", "max_new"}
    assert {key.field for key in SAMPLE_KEYS.values()} == sample
    beam = {field.name for field in fields(BeamSettings)} - {"max_new"}
    assert {key.field for key in BEAM_KEYS.values()} == beam
