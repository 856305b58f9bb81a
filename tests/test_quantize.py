"""Experiments on precision: exact where arithmetic says so, and the original stays as it was."""

import dataclasses
import itertools
import json
import threading

import numpy as np
import pytest
import torch

from core.decode.generate import generate
from core.edits.grid import Grid, on_grid, round_to
from core.edits.rounding import rows_of
from core.edits.spec import ModelEdit, Packing, Rounding, parse_edit, spell
from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab import copies, quantize_recorded
from core.lab.copies import private
from core.lab.quality import quality, reference, text_ids
from core.lab.quantize import STREAM_TEXT, effect, sweep
from core.lab.quantize_copy import packed, relative, set_rounded, would_take
from core.lab.quantize_look import (
    by_hand,
    look,
    matrix,
    matrix_names,
    origin,
    outliers,
    sits_on,
    span_scale,
)
from core.lab.quantize_recorded import recorded
from core.lab.quantize_records import BITS, CURVES, PACKINGS, Stored, line, named, repeats
from core.lab.quantize_speed import speed
from core.lab.timing import Spread
from core.models.catalog import DEFAULT
from core.models.load import load
from core.models.loaded import tensor_bytes
from core.models.tiny import tiny_of
from core.settings import Settings
from core.trace import nbytes


def last(turns):
    found = None
    for found in turns:  # noqa: B007 - the last one counts
        pass
    return found


def end(turns):
    while True:
        try:
            next(turns)
        except StopIteration as stop:
            return stop.value


def weights_of(engine):
    with engine.borrowed() as model:
        return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def untouched(engine, before):
    return all(torch.equal(tensor, before[name]) for name, tensor in weights_of(engine).items())


# ---------------------------------------------------------------- the sweep


def test_a_sweep_is_worse_with_fewer_bits_and_leaves_the_original_alone(tiny):
    before = weights_of(tiny)
    found = last(sweep(tiny, line(Grid())))
    assert found.done
    assert [point.edit for point in found.points] == [f"bits:{n}:channel" for n in BITS]
    kls, errors = [p.kl for p in found.points], [p.error for p in found.points]
    assert kls == sorted(kls)
    assert errors == sorted(errors)
    assert all(later > 1.8 * earlier for earlier, later in itertools.pairwise(errors))
    assert untouched(tiny, before)


def test_every_setting_of_a_sweep_starts_from_the_original(tiny):
    """Also after one that rounded the LM head."""
    settings = [Rounding(Grid(2), head=True), Rounding(Grid(6))]
    swept = last(sweep(tiny, settings)).points[1]
    assert swept == last(sweep(tiny, settings[1:])).points[0]
    alone = last(effect(tiny, settings[1], (5, 6), tokens=1)).point
    assert swept == alone


def test_a_sweep_says_how_far_it_is(tiny):
    shares = [found.progress for found in sweep(tiny, line(Grid(), bits=(8, 4)))]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_the_original_reads_the_same_while_others_change_copies(tiny):
    """Two threads: one rounds, packs and sweeps, the other one asks the original."""
    ids = tiny.vocabulary.read("the thing").ids
    before, wrong = weights_of(tiny), []
    logits = LocalEngine(tiny_of("llama")).forward(ids).logits
    done = threading.Event()

    def ask():
        turn = 0
        while not done.is_set() or turn < 3:
            fresh = LocalEngine.forward(tiny, (*ids, turn % 200))
            plain = LocalEngine.forward(tiny, ids)
            wrong.extend([turn] * (not np.array_equal(plain.logits, logits)))
            turn += fresh is not None

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        last(sweep(tiny, line(Grid(), bits=(4, 2))))
        last(effect(tiny, Packing("int4"), ids, tokens=4))
        last(speed(tiny, PACKINGS[:2], repeats=1))
    finally:
        done.set()
        asking.join()
    assert wrong == []
    assert untouched(tiny, before)


def test_a_copy_shares_no_tensor_and_needs_room(tiny, monkeypatch):
    twin = private(tiny)
    with tiny.borrowed() as model:
        theirs = {tensor.data_ptr() for tensor in model.state_dict().values()}
    assert not theirs & {tensor.data_ptr() for tensor in twin.state_dict().values()}
    small = dataclasses.make_dataclass("Memory", ["available"])(100)
    monkeypatch.setattr(copies.psutil, "virtual_memory", lambda: small)
    with pytest.raises(Fault) as caught:
        private(tiny)
    assert caught.value.code == "no_memory_to_copy"


def test_the_error_of_a_copy_is_that_of_its_matrices(tiny):
    twin = private(tiny)
    errors = end(set_rounded(tiny, twin, Rounding(Grid(3))))
    off = whole = 0.0
    with tiny.borrowed() as model:
        for name in errors:
            weight = rows_of(model.get_submodule(name)).numpy()
            off += float(np.square(round_to(weight, Grid(3)).values - weight).sum())
            whole += float(np.square(weight).sum())
            mine = rows_of(twin.get_submodule(name)).numpy()
            assert np.array_equal(mine, round_to(weight, Grid(3)).values)
    assert relative(errors) == pytest.approx((off / whole) ** 0.5, rel=1e-5)
    assert relative(errors, "model.layers.1.") != relative(errors, "model.layers.0.")
    assert relative(errors, "nowhere") == 0.0


@pytest.mark.parametrize(
    "storage", [Packing("int8"), Packing("int4", 32), Packing("int8", head=True)]
)
def test_the_size_of_codes_is_that_of_the_packed_tensors(tiny, storage):
    grid = Grid(8) if storage.storage == "int8" else Grid(4, "group", 32, symmetric=False)
    twin = packed(tiny, storage)
    with tiny.borrowed() as model:
        computed = would_take(model, Rounding(grid, storage.head))
    # int4 pads 278 rows of the head to 288; without the head nothing is padded.
    assert computed == tensor_bytes([*twin.parameters(), *twin.buffers()])


@pytest.mark.parametrize("head", [False, True])
def test_the_head_is_rounded_where_it_is_asked_for(tiny, head):
    setting = Rounding(Grid(3), head)
    weight = weights_of(tiny)["lm_head.weight"]
    wanted = torch.from_numpy(round_to(weight.numpy(), setting.grid).values) if head else weight
    twin = private(tiny)
    errors = end(set_rounded(tiny, twin, setting))
    assert torch.equal(twin.lm_head.weight, wanted)
    assert ("lm_head" in errors) == head
    assert torch.equal(load(f"tiny#{named(setting)}").model.lm_head.weight, wanted)


def test_one_scale_for_a_whole_matrix_is_stored_once(tiny):
    # 14 matrices with 18,432 weights of a byte each; all else and 16 frequencies' bytes as ever.
    with tiny.borrowed() as model:
        rest, frequencies = 36_384 - 18_432, tensor_bytes(model.buffers())
        for grid, each in ((Grid(8, "tensor"), 2), (Grid(8, "tensor", symmetric=False), 4)):
            computed = would_take(model, Rounding(grid))
            assert computed == 18_432 + 14 * each + 2 * rest + frequencies


# ---------------------------------------------------------------- one setting


def test_an_effect_is_told_bit_by_bit(tiny):
    ids = tiny.vocabulary.read("the thing").ids
    records = list(effect(tiny, Rounding(Grid(3)), ids, tokens=5))
    shares = [found.progress for found in records]
    assert shares == sorted(shares)
    found = records[-1]
    assert found.done
    logits = tiny.forward(ids).logits.astype(np.float64)
    p = np.exp(logits - logits.max())
    p /= p.sum()
    for one in found.candidates:
        assert one.before == pytest.approx(p[one.id], rel=1e-4)
    assert {one.id for one in found.candidates} >= set(np.argsort(-p)[:8].tolist())
    assert 1 <= len(found.before) <= 5
    assert len(found.layers) == tiny.info.layers
    assert found.layers[0].stream > 0.05
    assert nbytes(found) == 0


def test_an_effect_is_the_original_beside_the_rounded_model(tiny):
    ids = tiny.vocabulary.read("the thing").ids
    edited = LocalEngine(load("tiny#bits:3:channel"))
    found = last(effect(tiny, Rounding(Grid(3)), ids, tokens=5))
    settings = Settings(strategy="greedy", max_new=5)
    for engine, text, chances in (
        (tiny, found.before, [one.before for one in found.candidates]),
        (edited, found.after, [one.after for one in found.candidates]),
    ):
        assert list(text) == [step.choice.id for step in generate(engine, ids, settings)]
        p = torch.from_numpy(engine.forward(ids).logits.copy()).softmax(-1)
        assert chances == pytest.approx([float(p[one.id]) for one in found.candidates], abs=1e-6)
    assert found.before != found.after
    read = text_ids(tiny.vocabulary, STREAM_TEXT)
    one, other = (engine.forward(read).residual for engine in (tiny, edited))
    off = np.linalg.norm(other - one, axis=-1) / np.linalg.norm(one, axis=-1)
    assert [layer.stream for layer in found.layers] == pytest.approx(off.mean(-1), rel=1e-3)
    rows = end(reference(tiny))
    with tiny.borrowed() as model:
        assert found.perplexity == pytest.approx(quality(model, rows).perplexity, rel=1e-6)


def test_rounding_to_the_grid_that_is_there_costs_nothing():
    from core.edits.rounding import round_weights

    loaded = tiny_of("llama")
    setting = Rounding(Grid(4, "group", 32, symmetric=False))
    round_weights(loaded.model, setting)
    engine = LocalEngine(loaded)
    found = last(effect(engine, setting, (1, 2, 3), tokens=4))
    assert found.point.kl < 1e-6
    assert found.before == found.after
    assert max(layer.weights for layer in found.layers) < 1e-6
    other = last(sweep(engine, [Rounding(Grid(4, "group", 16, symmetric=False))]))
    assert other.points[0].kl > 1e-3
    assert last(origin(engine)).main.grid == setting.grid


def test_a_finer_grid_may_hold_all_values_of_a_coarser_one():
    four = Grid(4, "group", 32, symmetric=False)
    assert repeats(four, four)
    assert repeats(four, dataclasses.replace(four, bits=8))  # 255 = 15 · 17
    assert not repeats(four, dataclasses.replace(four, bits=6))
    assert not repeats(four, dataclasses.replace(four, group=64))
    assert not repeats(four, dataclasses.replace(four, symmetric=True))
    assert repeats(Grid(2), Grid(8))  # -1, 0 and 1 are always there
    assert not repeats(Grid(4), Grid(8))  # 127 is no multiple of 7
    table = np.random.default_rng(4).normal(size=(6, 64)).astype(np.float32)
    for grid, finer in ((four, dataclasses.replace(four, bits=8)), (Grid(2), Grid(8))):
        values = round_to(table, grid).values
        assert np.allclose(round_to(values, finer).values, values, atol=1e-6)


# ---------------------------------------------------------------- looking closely


def test_weights_that_nobody_rounded_sit_on_no_grid(tiny):
    found = last(origin(tiny))
    assert (found.grids, found.main, found.tensors) == ((), None, 21)
    assert found.weights == tiny.info.parameters


def test_torch_recognises_the_grids_that_the_arithmetic_does():
    table = np.random.default_rng(3).normal(size=(6, 64)).astype(np.float32)
    for grid in CURVES:
        values = round_to(table, grid).values
        assert sits_on(torch.from_numpy(values), grid) == on_grid(values, grid) is True
        assert sits_on(torch.from_numpy(table), grid) == on_grid(table, grid) is False


def test_a_row_by_hand():
    table = np.array([[0.5, 1.5, 2.5, -7.0], [0.0, 0, 0, 0], [1.0, 2, 3, 10]])
    hand = by_hand(table, round_to(table, Grid(4)), 0)
    assert (hand.scale, hand.offset, hand.low, hand.high, hand.span) == (1.0, 0.0, -7.0, 2.5, 4)
    assert hand.codes.tolist() == [0, 2, 2, -7]
    assert hand.error.tolist() == [0.5, 0.5, 0.5, 0.0]
    zero = by_hand(table, round_to(table, Grid(4)), 1)
    assert (zero.scale, zero.codes.tolist()) == (0.0, [0, 0, 0, 0])
    grid = Grid(2, "group", 2, symmetric=False)
    pair = by_hand(table, round_to(table, grid), 2, start=3)
    assert (pair.start, pair.span, pair.offset) == (2, 2, 3.0)
    assert pair.scale == pytest.approx(7 / 3)
    assert pair.values.tolist() == [3.0, 10.0]


def test_outliers_and_what_they_do_to_the_scale():
    table = np.full((4, 8), 0.1)
    table[2, 5], table[0, 1] = -10.0, 1.4
    found = outliers(table)
    assert [(one.row, one.column, one.value) for one in found[:2]] == [(2, 5, -10.0), (0, 1, 1.4)]
    seen = look("w", table, Grid(4), row=2)
    assert [one.grid.span for one in seen.scales] == ["tensor", "channel", *["group"] * 3]
    whole, row, *_ = seen.scales
    assert whole.largest == whole.smallest == pytest.approx(10 / 7)
    assert (row.smallest, row.largest) == (pytest.approx(0.1 / 7), pytest.approx(10 / 7))
    assert whole.zeroed == pytest.approx(30 / 32)
    assert seen.without == pytest.approx(1.4 / 7)
    assert seen.counts.sum() == seen.rounded.sum() == 32
    assert seen.points.size == 15


def test_errors_and_deviations_by_hand():
    # Three halves are lost; what is left of the row is its own grid.
    found = span_scale(np.array([[0.5, 1.5, 2.5, -7.0]]), Grid(4))
    assert found.error == pytest.approx(0.75**0.5 / (0.25 + 2.25 + 6.25 + 49) ** 0.5)
    assert found.zeroed == 0.25
    # Their mean is 0, and the mean of their squares is 3.
    (largest, *_) = outliers(np.array([[-3.0, 1.0, 1.0, 1.0]]))
    assert (largest.value, largest.deviations) == (-3, pytest.approx(3**0.5))


def test_any_matrix_can_be_looked_at(tiny):
    names = matrix_names(tiny)
    assert len(names) == 15
    assert names[-1] == "lm_head"
    assert matrix(tiny, "model.layers.0.mlp.down_proj").shape == (32, 64)
    with pytest.raises(Fault) as caught:
        matrix(tiny, "model.norm")
    assert caught.value.code == "no_such_matrix"


# ---------------------------------------------------------------- real sizes and times


def test_sizes_are_those_of_the_tensors_and_what_is_missing_is_named(tiny, monkeypatch):
    monkeypatch.setattr(
        "core.edits.pack_bnb.check", lambda: (_ for _ in ()).throw(Fault("no_bitsandbytes"))
    )
    storages = (Packing("bf16"), Packing("int8"), Packing("nf4"))
    found = last(speed(tiny, storages, repeats=2, context=4, read=8))
    assert found.done
    assert found.missing == ("nf4",)
    sizes = {row.edit: row.nbytes for row in found.rows}
    with tiny.borrowed() as model:
        frequencies = tensor_bytes(model.buffers())
    assert sizes[""] == tiny.info.bytes_in_memory
    assert sizes["bf16"] == 2 * tiny.info.parameters + frequencies
    assert sizes["int8"] == 55_392
    assert all(row.step.repeats == row.prefill.repeats == 2 for row in found.rows)
    assert all(row.step.low <= row.step.median <= row.step.high for row in found.rows)


def test_steps_and_prefills_are_timed_under_their_own_names(tiny, monkeypatch):
    """A clock for which a step takes 2 ms and a prefill 9."""

    def turns(calls, repeats):
        yield 1.0
        return {name: Spread.of([call()] * repeats) for name, call in calls.items()}

    monkeypatch.setattr("core.lab.quantize_speed.in_turns", turns)
    monkeypatch.setattr("core.lab.quantize_speed.step", lambda *_: lambda: 2.0)
    monkeypatch.setattr("core.lab.quantize_speed.prefill", lambda *_: lambda: 9.0)
    found = last(speed(tiny, (Packing("int4", 32),), repeats=1))
    assert [(row.step.median, row.prefill.median) for row in found.rows] == [(2, 9)] * 2
    judged = quality(packed(tiny, Packing("int4", 32)), end(reference(tiny)))
    assert (found.rows[1].kl, found.rows[1].top1) == pytest.approx((judged.kl, judged.top1))


def test_other_faults_of_a_copy_are_not_swallowed(tiny, monkeypatch):
    def refuse(engine, packing):
        raise Fault("no_memory_to_copy", name="x", needed=1)

    monkeypatch.setattr("core.lab.quantize_speed.packed", refuse)
    with pytest.raises(Fault):
        last(speed(tiny, (Packing("bf16"),)))


# ---------------------------------------------------------------- what is stored with the program


def test_every_setting_is_an_edit_that_can_be_named():
    for setting in (*quantize_recorded.recorded_settings(), *PACKINGS):
        edit = parse_edit(named(setting))
        assert spell(edit) == named(setting)
        assert setting in (edit.rounding, edit.packing)
    assert named(None) == "" == spell(ModelEdit())


def test_the_file_gives_back_what_was_stored(tiny, tmp_path, monkeypatch):
    path = tmp_path / "recorded.json"
    swept = last(sweep(tiny, line(Grid(), bits=(8, 2))))
    timed = last(speed(tiny, PACKINGS[:1], repeats=1, context=2, read=4))
    found = quantize_recorded.Recorded(last(origin(tiny)), swept, timed)
    quantize_recorded.record("tiny", found, path)
    quantize_recorded.record("other", found, path)
    assert set(json.loads(path.read_text())) == {"tiny", "other"}
    monkeypatch.setattr(quantize_recorded, "FILE", path)
    recorded.cache_clear()
    back = recorded("tiny")
    recorded.cache_clear()
    assert (back.origin, back.speed) == (found.origin, found.speed)
    assert back.sweep.points[1].kl == pytest.approx(swept.points[1].kl, rel=1e-4)
    assert isinstance(back.speed.rows[0], Stored)
    assert isinstance(back.speed.rows[0].step, Spread)


@pytest.mark.parametrize("model", ["smollm2-135m", "gemma3-270m"])
def test_the_recorded_sweeps_show_the_cliff(model):
    found = recorded(model)
    every = [setting for curve in CURVES[:5] for setting in line(curve)]
    if model == DEFAULT:
        every = quantize_recorded.recorded_settings()
    assert all(found.sweep.at(setting) is not None for setting in every)
    assert found.sweep.at(Rounding(Grid(8))).kl <= 0.01
    for curve in CURVES[1:5]:
        kls = [found.sweep.at(setting).kl for setting in line(curve, bits=(8, 5, 3))]
        assert kls[0] < 0.02
        assert kls[2] > 6 * kls[1], curve
    assert {row.edit for row in found.speed.rows} >= {"", "bf16", "int8", "int4:64"}


def test_the_default_model_is_recorded_as_rounded_before():
    found = recorded("smollm2-135m")
    main = found.origin.main
    assert (main.tensors, found.origin.tensors) == (210, 272)
    assert main.grid == Grid(4, "group", 32, symmetric=False)
    assert found.sweep.at(Rounding(main.grid)).kl < 1e-5
    sizes = {row.edit: row.nbytes for row in found.speed.rows}
    assert sizes["int8"] == found.sweep.at("bits:8:channel").nbytes
    assert sizes["int4:64"] == found.sweep.at("bits:4:group:64:asym").nbytes


# ---------------------------------------------------------------- the real model


@pytest.mark.model
def test_eight_bits_cost_nothing_and_three_cost_everything(smollm2):
    found = last(sweep(smollm2, line(Grid(), bits=(8, 5, 3))))
    eight, five, three = (point.kl for point in found.points)
    assert eight <= 0.01
    assert 0.1 < five < 1
    assert three > 10 * five
    assert untouched(
        smollm2, load("smollm2-135m", device="cpu", dtype="float32").model.state_dict()
    )


@pytest.mark.model
def test_the_real_model_sits_on_the_grid_of_its_file(smollm2):
    found = last(origin(smollm2))
    assert (found.main.tensors, found.tensors) == (210, 272)
    assert found.main.grid == Grid(4, "group", 32, symmetric=False)


@pytest.mark.model
def test_the_packed_real_model_is_its_twin_and_its_bytes_are_exact(default_model):
    ids = None
    logits = {}
    for edit in ("int4:64", "bits:4:group:64:asym"):
        engine = LocalEngine(load(f"{default_model}#{edit}", device="cpu", dtype="float32"))
        ids = ids or engine.vocabulary.read("The capital of France is").ids
        logits[edit] = engine.forward(ids).logits.astype(np.float64)
        if edit == "int4:64":
            # 210 matrices of half a byte a weight and 4 bytes for each 64; the rest in bf16.
            linear, rest = 106_168_320, 28_346_688
            assert engine.info.bytes_in_memory == linear // 2 + linear // 64 * 4 + 2 * rest + 256
            assert engine.info.parameters == linear + rest
    packed_one, twin = (torch.log_softmax(torch.tensor(x), -1) for x in logits.values())
    assert float((twin.exp() * (twin - packed_one)).sum()) < 0.01
