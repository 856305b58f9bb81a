"""One parameter over a range."""

from dataclasses import replace

import pytest

from core.compare_records import Column
from core.decode import Sweep, parse_column, parse_sweep, spell, spell_sweep, sweep_columns
from core.decode.sweep import BEAMS, MOST, RANGES
from core.faults import Fault
from core.settings import BeamSettings, Settings
from tests.comparing import ask, last, toy

SAMPLE, BEAM = Column(Settings(top_p=0.9, seed=4)), Column(BeamSettings(width=6, nbest=3))


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("temperature:0:2:9", (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2)),
        ("top_p:0.1:1:10", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)),
        ("top_k:1:1000:4", (1, 10, 100, 1000)),
        ("top_k:1:5:9", (1, 2, 3, 4, 5)),  # whole numbers, each once
        ("beams:1:8:8", (1, 2, 3, 4, 5, 6, 7, 8)),
        ("length_penalty:-1:1:3", (-1, 0, 1)),
        ("min-p:0:0.3:4", (0, 0.1, 0.2, 0.3)),
    ],
)
def test_values(line, values):
    assert parse_sweep(line).values == values


@pytest.mark.parametrize("name", RANGES)
def test_every_parameter_has_a_usual_range_and_a_line(name):
    sweep = parse_sweep(name)
    assert parse_sweep(spell_sweep(sweep)) == sweep
    columns = sweep_columns(BEAM if name in BEAMS else SAMPLE, sweep)
    assert 2 <= len(columns) == len(sweep.values) <= MOST
    assert len({spell(column) for column in columns}) == len(columns)
    again = sweep_columns(SAMPLE if name in BEAMS else BEAM, sweep)  # the other kind is replaced
    assert len(again) == len(columns)


def test_columns_keep_the_rest():
    columns = sweep_columns(SAMPLE, Sweep("temperature", 0, 1, 2))
    assert [spell(c) for c in columns] == [
        "sample,temperature=0,top_p=0.9,seed=4",
        "sample,top_p=0.9,seed=4",
    ]
    widths = sweep_columns(BEAM, Sweep("beams", 2, 4, 3))
    assert [spell(c) for c in widths] == ["beam,beams=2", "beam,beams=3,nbest=3", "beam,nbest=3"]
    other = sweep_columns(parse_column("greedy,model=gemma3-270m"), Sweep("top_k", 1, 2, 2))
    assert [spell(c) for c in other] == [
        "sample,top_k=1,model=gemma3-270m",
        "sample,top_k=2,model=gemma3-270m",
    ]
    greedy = sweep_columns(parse_column("greedy"), Sweep("repetition_penalty", 1, 1.5, 2))
    assert [spell(c) for c in greedy] == [
        "greedy,repetition_penalty=1",
        "greedy,repetition_penalty=1.5",
    ]


def test_a_sweep_is_one_comparison():
    columns = sweep_columns(parse_column("sample,seed=2"), Sweep("temperature", 0, 2, 25))
    found = last(toy(), replace(ask("greedy"), columns=columns))
    assert len(found.columns) == 25
    assert found.columns[0].texts[0].ids[0] == 0  # temperature 0 is greedy
    assert {w.texts[0].choices[0].u for w in found.columns[1:]} == {
        found.columns[1].texts[0].choices[0].u
    }


BAD = [
    ("", "A sweep is written NAME:LOW:HIGH:COUNT, such as temperature:0:2:9"),
    ("temperature:0:2", "A sweep is written"),
    ("temperature:0:2:9:1", "A sweep is written"),
    ("temperature:a:2:9", "A sweep is written"),
    ("temperature:0:2:1.5", "A sweep is written"),
    ("heat:0:2:9", "'heat' cannot be swept; choose one of: temperature, top_k"),
    ("temperature:0:2:26", "A sweep has from 2 to 25 values, but this one asks for 26."),
    ("temperature:0:2:1", "A sweep has from 2 to 25 values"),
    ("temperature:2:0:5", "A sweep goes from the lower value to the higher one, but 2 is not"),
    ("temperature:1:1:5", "A sweep goes from the lower value"),
    ("temperature:0:inf:5", "A sweep goes from the lower value"),
    ("temperature:nan:1:5", "A sweep goes from the lower value"),
]


@pytest.mark.parametrize(("line", "said"), BAD)
def test_faults(line, said):
    with pytest.raises(Fault) as caught:
        parse_sweep(line)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    "line",
    [
        "temperature:-1:2:4",
        "top_p:0:1:5",
        "top_k:0:5:6",
        "beams:1:300:3",
        "top_k:-1e308:1e308:3",
        "top_k:1e-308:1e308:3",
        "length_penalty:-1e308:1e308:3",
    ],
)
def test_values_that_a_parameter_cannot_have(line):
    with pytest.raises(Fault) as caught:
        sweep_columns(SAMPLE, parse_sweep(line))
    assert caught.value.code.startswith("setting_out_of_range")
