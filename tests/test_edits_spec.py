"""How changes to a model are written, and that an edited model is the model, changed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.edits.grid import SPANS, Grid, round_to
from core.edits.masks import METHODS
from core.edits.rounding import matrices, rounded
from core.edits.spec import (
    GROUPS,
    STORAGES,
    ModelEdit,
    Packing,
    Rounding,
    Zeros,
    join,
    parse_edit,
    respelled,
    spell,
    split,
)
from core.faults import Fault
from core.models.catalog import resolve, state_on_disk, title_of
from core.models.load import load
from ui.lab_options import options, spelled

GRIDS = st.builds(
    Grid,
    st.integers(2, 8),
    st.sampled_from(SPANS),
    st.sampled_from([32, 64, 128]),
    st.booleans(),
).map(lambda g: g if g.span == "group" else Grid(g.bits, g.span, symmetric=g.symmetric))
SHARES = st.integers(1, 99).map(lambda n: n / 100)
EDITS = st.builds(
    ModelEdit,
    layers=st.sets(st.integers(0, 99), max_size=4).map(lambda s: tuple(sorted(s))),
    groups=st.integers(0, 9),
    heads=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4).map(
        lambda s: tuple(sorted(s))
    ),
    neurons=st.just(0.0) | SHARES,
    zeros=st.none()
    | st.builds(Zeros, SHARES, st.sampled_from(METHODS))
    | st.builds(Zeros, st.just(0.5), st.sampled_from(METHODS), st.just(True)),
    rounding=st.none() | st.builds(Rounding, GRIDS, st.booleans()),
)
PACKINGS = st.builds(
    Packing, st.sampled_from(STORAGES), st.sampled_from(GROUPS), st.booleans()
).map(lambda p: p if p.storage == "int4" else Packing(p.storage, head=p.head))


@given(EDITS)
def test_what_is_spelled_is_read_back(edit):
    assert parse_edit(spell(edit)) == edit
    assert bool(edit) == bool(spell(edit))


@given(PACKINGS)
def test_packed_ones_too(packing):
    edit = ModelEdit(packing=packing)
    assert parse_edit(spell(edit)) == edit


def test_the_parts_may_come_in_any_order():
    one, other = parse_edit("bits:4:group:64+neurons:0.2"), parse_edit("neurons:.20+bits:4:group")
    assert one == other
    assert spell(one) == "neurons:0.2+bits:4:group:64"
    assert spell(parse_edit("bits:8")) == "bits:8:channel"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("bits", "edit_unreadable"),
        ("bits:4.5", "edit_unreadable"),
        ("bits:4:row", "edit_unreadable"),
        ("bits:4:tensor:channel", "edit_unreadable"),
        ("bits:4:asym:sym", "edit_unreadable"),
        ("bits:1", "setting_out_of_range"),
        ("bits:9", "setting_out_of_range"),
        ("bits:4:group:0", "setting_out_of_range"),
        ("neurons:1", "setting_out_of_range_high_open"),
        ("neurons:nan", "setting_out_of_range_high_open"),
        ("neurons:-0.1", "setting_out_of_range_high_open"),
        ("neurons", "edit_unreadable"),
        ("neurons:0.1+neurons:0.2", "edit_twice"),
        ("zeros:0.5:best", "unknown_method"),
        ("zeros:0.5:wanda:more", "edit_unreadable"),
        ("heads:1", "edit_unreadable"),
        ("heads:1.2.3", "edit_unreadable"),
        ("layers:-1", "edit_unreadable"),
        ("layers:²", "edit_unreadable"),
        ("groups:", "edit_unreadable"),
        ("int4:48", "edit_group"),
        ("int8:64", "edit_unreadable"),
        ("int8+bits:4", "edit_rounded_and_packed"),
        ("int8+int4", "edit_twice"),
        ("<script>", "edit_unreadable"),
        ("neurons:0.1+" * 40, "edit_too_long"),
    ],
)
def test_what_is_no_edit_is_a_sentence(text, code):
    with pytest.raises(Fault) as fault:
        parse_edit(text)
    assert fault.value.code == code


def test_a_model_with_an_edit_is_a_name():
    entry = resolve("tiny#bits:4")
    assert entry.name == "tiny#bits:4:channel"
    assert entry.edit == "bits:4:channel"
    assert entry.unedited == resolve("tiny")
    assert entry.light
    assert state_on_disk(entry) == "ready"
    assert resolve("tiny#") == resolve("tiny")
    assert title_of("smollm2-135m#int8") == "SmolLM2 135M Instruct · int8"
    assert split("tiny#bits:4") == ("tiny", "bits:4")
    assert join("tiny", "") == "tiny"
    assert resolve("org/name#int8").unedited.name == "org/name"
    for name in ("toy#int8", "tiny#nothing", "no-such-model#int8"):
        with pytest.raises(Fault):
            resolve(name)
    with pytest.raises(Fault, match="folder"):
        resolve("/no/such#int8", local=False)


def test_one_edited_model_has_one_name():
    assert respelled("tiny#bits:4") == "tiny#bits:4:channel"
    assert respelled("tiny#bits:4+neurons:0.20") == "tiny#neurons:0.2+bits:4:channel"
    assert respelled("tiny#") == respelled("tiny") == "tiny"
    for no_edit in ("", "tiny#nothing", "/my/#1 model", "tiny#bits:4#bits:3"):
        assert respelled(no_edit) == no_edit


def test_rounding_is_the_grid_of_the_arithmetic():
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(5, 70, generator=generator)
    weight[2] = 0
    for span in SPANS:
        for symmetric in (True, False):
            for bits in (2, 3, 4, 8):
                grid = Grid(bits, span, 32, symmetric)
                ours, law = rounded(weight, grid).numpy(), round_to(weight.numpy(), grid).values
                # float32 and float64 part at an exact half only: by one step of the grid.
                assert np.abs(ours - law).max() < 1e-5


def test_an_edited_model_is_a_copy_with_other_weights(tiny):
    before = {name: value.clone() for name, value in tiny._model.named_parameters()}
    edited = load("tiny#bits:3:tensor")
    assert edited.info.name == "tiny#bits:3:tensor"
    for (name, module), (_, original) in zip(
        matrices(edited.model, head=True), matrices(tiny._model, head=True), strict=True
    ):
        distinct = len(module.weight.unique())
        if name == "lm_head":
            assert torch.equal(module.weight, original.weight)
        else:
            assert distinct <= 7
    assert all(torch.equal(value, before[name]) for name, value in tiny._model.named_parameters())


def test_options_of_a_page_survive_a_link_and_bad_values_do_not():
    table = {"bits": (8, int), "text": ("", str), "alpha": (None, float)}
    values = {"bits": 4, "text": "a,b=c%2C", "alpha": 0.5}
    assert options(spelled(values, table), table) == values
    assert spelled({"bits": 8, "text": "", "alpha": None}, table) == ""
    assert options("bits=x,what=1,alpha=off,,=", table) == {"bits": 8, "text": "", "alpha": None}


def test_what_is_packed_has_the_rounding_that_it_equals():
    twins = {text: parse_edit(text).packing.twin for text in ("int8", "int4:32", "nf4", "bf16")}
    assert twins == {
        "int8": parse_edit("bits:8").rounding.grid,
        "int4:32": parse_edit("bits:4:group:32:asym").rounding.grid,
        "nf4": None,
        "bf16": None,
    }


@pytest.mark.parametrize("text", ["neurons:0.99999", "zeros:0.99999"])
def test_a_share_that_rounds_to_all_of_it_is_refused(text):
    with pytest.raises(Fault, match="below 1"):
        parse_edit(text)
