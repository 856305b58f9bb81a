"""The experiments on pruning: their numbers are those of the edited models, exactly."""

import json
import math
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from core.cli.lab_prune_lines import _crossings, _size, _times
from core.decode.generate import Stopped, run
from core.edits.spec import ModelEdit, Zeros, parse_edit
from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab import importance as ablation
from core.lab import prune_copy, quality
from core.lab.prune import effect, ladder, removals, settings, sweep
from core.lab.prune_cut import cut, names_of
from core.lab.prune_records import Crossing, Crossings
from core.lab.prune_stored import FOLDER, read, stored
from core.lab.sparse import crossings, listed, listed_bytes, matrix_of
from core.lab.timing import Spread
from core.models.catalog import DEFAULT, GEMMA3
from core.models.load import load
from core.settings import RunSpec, Settings
from core.trace import Edit

PROMPT = "The capital of France is"
MOST = 24
"""Tokens of each judging text in these tests."""


def end_of(turns):
    """The last record; on the way each is further than the one before, and only it is done."""
    last, done = None, []
    for record in turns:
        assert last is None or record.progress >= last.progress - 1e-9
        last = record
        done.append(record.done)
    assert done == [False] * (len(done) - 1) + [True]
    assert last.progress == pytest.approx(1)
    return last


def iter_to_end(turns):
    """What is yielded, and then the result."""
    while True:
        try:
            yield next(turns)
        except StopIteration as end:
            yield end.value
            return


def judged(model, engine):
    rows = None
    turns = quality.reference(engine, most=MOST)
    while True:
        try:
            next(turns)
        except StopIteration as end:
            rows = end.value
            break
    return quality.quality(model, rows)


@pytest.fixture(scope="module")
def engine():
    return LocalEngine(load("tiny"))


@pytest.fixture(scope="module")
def ids(engine):
    return engine.vocabulary.read(PROMPT).ids


EDITS = [
    "neurons:0.3", "layers:1+zeros:0.5:wanda", "heads:0.1+bits:4:channel", "groups:1+int8",
]  # fmt: skip


@pytest.mark.parametrize("text", EDITS)
def test_an_effect_is_that_of_the_edited_model(engine, ids, text):
    before = engine.forward(ids).logits.copy()
    found = end_of(effect(engine, parse_edit(text), ids, repeats=2, most=MOST))
    edited = LocalEngine(load(f"tiny#{text}"))
    assert found.edit == text
    expected = judged(edited._model, engine)
    assert found.judged.perplexity == pytest.approx(expected.perplexity, rel=1e-5)
    assert found.judged.kl == pytest.approx(expected.kl, rel=1e-4, abs=1e-6)
    assert found.perplexity == pytest.approx(judged(engine._model, engine).perplexity, rel=1e-6)
    # The texts are what everybody else sees the two models write.
    spec = RunSpec("tiny", PROMPT, Settings(strategy="greedy", max_new=prune_copy.TEXT))
    for own, other in ((found.before, engine), (found.after, edited)):
        assert own == tuple(step.choice.id for step in run(other, spec).steps)
    # Sizes are counted, and agree with what the model's card says.
    assert found.original.nbytes == engine.info.bytes_in_memory
    assert found.edited.nbytes == edited.info.bytes_in_memory
    assert found.edited.parameters == edited.info.parameters
    assert (found.times is not None) == parse_edit(text).removes
    assert np.array_equal(LocalEngine(load("tiny")).forward(ids).logits, before)


def test_two_experiments_at_once_leave_the_original_bit_equal(engine, ids):
    def pass_of(token):
        return engine.forward([*ids, token]).logits

    before = [pass_of(token).copy() for token in range(8)]
    engine._memo.__init__(10**6)
    faults = []

    def work(text):
        try:
            end_of(effect(engine, parse_edit(text), ids, repeats=2, most=MOST))
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(t,)) for t in ("neurons:0.5", "zeros:0.9")]
    for thread in threads:
        thread.start()
    during = [pass_of(token) for token in range(8)]
    for thread in threads:
        thread.join()
    assert not faults
    for one, other in zip(before, during, strict=True):
        assert np.array_equal(one, other)


def test_a_stopped_experiment_gives_its_place_back(engine, ids):
    for turns in (
        effect(engine, ModelEdit(neurons=0.5), ids, most=MOST),
        sweep(engine, most=MOST),
        removals(engine, [ModelEdit(neurons=0.5)], ids, most=MOST),
    ):
        for _ in range(4):
            next(turns)
        with pytest.raises(Stopped):
            turns.throw(Stopped())
    held = [prune_copy.COPIES.acquire(blocking=False) for _ in range(3)]
    assert held == [True, True, False]
    # With no place free it says that it waits, and goes on when there is one.
    waiting = effect(engine, ModelEdit(neurons=0.5), ids, most=MOST)
    assert next(waiting).progress == 0
    for _ in range(2):
        prune_copy.COPIES.release()
    assert end_of(waiting).judged is not None


def test_what_cannot_be_done_is_a_fault_and_gives_the_place_back(engine, ids):
    with pytest.raises(Fault) as caught:
        list(effect(engine, ModelEdit(layers=(0, 1)), ids))
    assert caught.value.code == "edit_removes_all_layers"
    assert prune_copy.COPIES.acquire(blocking=False)
    prune_copy.COPIES.release()


def test_each_point_of_a_sweep_is_that_share_of_the_original(engine):
    chosen = (Zeros(0.6, "wanda"), Zeros(0.2, "magnitude"), Zeros(0.5, "random", True))
    found = end_of(sweep(engine, chosen, most=MOST))
    assert [p.zeros for p in found.points] == list(chosen)
    for zeros, point in zip(chosen, found.points, strict=True):
        share = "2of4" if zeros.two_of_four else zeros.share
        model = load(f"tiny#zeros:{share}:{zeros.method}").model
        expected = judged(model, engine)
        assert point.judged.perplexity == pytest.approx(expected.perplexity, rel=1e-6)
        assert found.at(zeros) is point
    assert len(settings()) == 39


def test_zeros_are_counted_in_the_matrices_of_the_layers_alone():
    size = prune_copy.size_of(load("tiny#zeros:0.25:magnitude").model)
    assert (size.zeros, size.weights) == (18_432 // 4, 18_432)
    assert size.parameters == 36_384


def test_removals_are_sized_judged_and_timed(engine, ids):
    edits = ladder(engine.info, [1, 0])
    assert [e.layers for e in edits if e.layers] == [(1,)]
    found = end_of(removals(engine, edits, ids, repeats=2, most=MOST))
    assert [row.edit for row in found.rows] == [
        "neurons:0.1", "neurons:0.2", "neurons:0.3", "neurons:0.5", "layers:1", "groups:1",
    ]  # fmt: skip
    # 32 × 64 numbers in each of three matrices of two layers: 32 of 64 neurons go.
    half = found.rows[3]
    assert found.original.nbytes - half.size.nbytes == 4 * 3 * 2 * 32 * 32
    assert all(row.times.ratio > 0 for row in found.rows)
    assert all(row.size.nbytes < found.original.nbytes for row in found.rows)


def test_times_are_those_of_the_original_and_of_the_copy(engine, ids, monkeypatch):
    twin = load("tiny").model
    with engine.borrowed() as model:
        own = model
    monkeypatch.setattr(prune_copy, "milliseconds", lambda c: 2.0 if c.args[0] is own else 5.0)
    *_, last = iter_to_end(prune_copy.timing(engine, twin, ids, 3))
    assert (last.original.median, last.edited.median, last.ratio) == (2, 5, 2.5)
    assert last.original.repeats == last.edited.repeats == 3
    assert last.context == len(ids) - 1


# ---------------------------------------------------------------- importance


def test_a_single_importance_is_the_engines_own_ablation(engine):
    found = end_of(ablation.importance(engine, most=10))
    text = ablation.text_ids(engine, 10)
    assert found.tokens == len(text) == 10

    def by_engine(edit):
        logits = [engine.forward(text[:n], edit=edit).logits for n in range(1, len(text))]
        rows = torch.log_softmax(torch.tensor(np.array(logits)), -1)
        return -float(rows.gather(1, torch.tensor(text[1:])[:, None]).mean())

    plain = by_engine(Edit())
    assert found.surprise == pytest.approx(plain, abs=1e-5)
    for layer in range(2):
        off = by_engine(Edit(layers_off=(layer,))) - plain
        assert found.layers[layer] == pytest.approx(off, abs=1e-5)
        for head in range(4):
            off = by_engine(Edit(heads_off=((layer, head),))) - plain
            assert found.heads[layer][head] == pytest.approx(off, abs=1e-5)


def test_importances_are_added_and_measured_together(engine):
    found = end_of(ablation.importance(engine, most=12))
    for kind, values in (("heads", [v for r in found.heads for v in r]), ("layers", found.layers)):
        sums = end_of(ablation.together(engine, found, kind, most=12)).sums
        assert [each.count for each in sums] == list(ablation.counts(len(values)))
        ranked = sorted(values)
        for each in sums:
            assert each.single == pytest.approx(sum(ranked[: each.count]), abs=1e-6)
        assert sums[0].joint == pytest.approx(sums[0].single, abs=1e-5)
    last = end_of(ablation.ranking(engine, most=12))
    assert last.heads.sums[-1].count == ablation.counts(8)[-1]
    assert last.layers.sums[-1].count == 1
    heads, text = found.ranked_heads[:4], ablation.text_ids(engine, 12)
    joint = ablation.surprise(engine, text, heads=heads) - found.surprise
    assert last.heads.sums[-1].joint == pytest.approx(joint, abs=1e-6)


def test_counts_never_take_all():
    assert ablation.counts(270) == (1, 5, 14, 27, 54, 81, 135)
    assert ablation.counts(2) == (1,)
    assert ablation.counts(1) == (1,)


# ---------------------------------------------------------------- one matrix


def test_a_cut_counts_every_weight(engine):
    name = names_of(engine)[-1]
    (found,) = cut(engine, name, Zeros(0.25, "magnitude"))
    assert name == "model.layers.1.mlp.down_proj"
    assert (found.rows, found.columns) == (32, 64)
    assert found.dropped.sum() == 512
    assert found.kept.sum() == 2048 - 512
    assert found.largest_dropped == found.limit <= found.smallest_kept
    (mixed,) = cut(engine, name, Zeros(0.5, "wanda"))
    assert mixed.limit is None
    assert mixed.dropped.sum() == 1024
    edited = load("tiny#zeros:0.5:wanda").model.get_submodule(name).weight
    assert mixed.smallest_kept == pytest.approx(float(edited.abs()[edited != 0].min()))
    # The dice are those of the edited model, for this matrix too.
    (dice,) = cut(engine, name, Zeros(0.5, "random"))
    edited = load("tiny#zeros:0.5:random").model.get_submodule(name).weight
    left = edited[edited != 0].numpy().clip(dice.edges[0], dice.edges[-1])
    assert dice.kept.tolist() == np.histogram(left, dice.edges)[0].tolist()
    (none,) = cut(engine, name, Zeros(0.0, "random"))
    assert none.dropped.sum() == 0
    with pytest.raises(KeyError):
        next(cut(engine, "lm_head", Zeros()))


def test_the_list_holds_what_is_not_zero_and_multiplies_alike(engine):
    table = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    sparse = listed(table)
    # three values and three columns of 4 bytes, and three row ends
    assert listed_bytes(sparse) == 3 * 4 + 3 * 4 + 3 * 4
    assert torch.equal(sparse @ torch.eye(3), table)
    found = end_of(crossings(engine, zeros=(0.5, 0.9), tokens=(1, 3), repeats=2))
    name, weight = matrix_of(engine)
    assert (found.name, found.rows, found.columns) == (name, *weight.shape)
    assert found.dense_bytes == 4 * weight.numel()
    rows = weight.shape[0]
    for share, size in found.sparse_bytes:
        kept = weight.numel() - int(share * weight.numel() + 1e-9)
        assert size == 8 * kept + 4 * (rows + 1)
    assert [(p.zeros, p.tokens) for p in found.points] == [(0.5, 1), (0.5, 3), (0.9, 1), (0.9, 3)]
    assert all(p.difference < 1e-4 for p in found.points)


def test_the_table_and_the_list_are_timed_under_their_own_names(engine, monkeypatch):
    """A clock that tells the two ways to keep a matrix apart."""

    def turns(calls, repeats):
        yield 1.0
        return {name: Spread.of([call()] * repeats) for name, call in calls.items()}

    def timed(matrix, x):
        return lambda: 3.0 if matrix.layout is torch.strided else 7.0

    monkeypatch.setattr("core.lab.sparse.in_turns", turns)
    monkeypatch.setattr("core.lab.sparse._timed", timed)
    found = end_of(crossings(engine, zeros=(0.5,), tokens=(1,), repeats=2))
    assert (found.points[0].dense.median, found.points[0].sparse.median) == (3, 7)
    # Gate, the first of the three largest matrices of the second of two layers.
    assert found.name == "model.layers.1.mlp.gate_proj"
    assert (found.rows, found.columns) == (64, 32)


def test_the_crossover_is_where_the_list_wins_from_there_on(engine):
    def point(zeros, sparse):
        return Crossing(zeros, 1, Spread(1, 1, 1, 1), Spread(sparse, 1, 9, 1), 0.0)

    machine = end_of(crossings(engine, zeros=(0.5,), tokens=(1,), repeats=1)).machine
    base = Crossings("m", 1, 1, (), 4, (), machine, 1.0, done=True)
    times = ((0.5, 0.9), (0.7, 1.5), (0.9, 0.8), (0.99, 0.3))
    found = replace(base, points=tuple(point(*pair) for pair in times))
    assert found.crossover(1) == 0.9
    assert found.crossover(32) is None
    assert replace(base, points=(point(0.5, 2.0),)).crossover(1) is None


# ---------------------------------------------------------------- recorded results


@pytest.mark.parametrize("entry", [DEFAULT, GEMMA3.name])
def test_recorded_results_are_whole(entry):
    found = stored(entry)
    for record in (found.sweep, found.removals, found.importance, found.crossings):
        assert record.done
        assert record.machine.processor
    assert [p.zeros for p in found.sweep.points] == list(settings())
    layers, heads = {DEFAULT: (30, 9), GEMMA3.name: (18, 4)}[entry]
    assert len(found.importance.layers) == layers
    assert {len(row) for row in found.importance.heads} == {heads}
    effects = [value for row in found.importance.heads for value in row]
    assert all(map(math.isfinite, [*effects, *found.importance.layers]))
    ranked = sorted(effects)
    for each in found.heads.sums:
        assert each.single == pytest.approx(sum(ranked[: each.count]), abs=1e-6)
    # What the page says: Wanda is better than size, chance is ruin, importances do not add up.
    for share in (0.3, 0.5):
        wanda, size, dice = (
            found.sweep.at(Zeros(share, method)).judged.perplexity
            for method in ("wanda", "magnitude", "random")
        )
        assert found.sweep.perplexity < wanda < size < dice
    assert found.heads.sums[-1].joint > 2 * max(found.heads.sums[-1].single, 0.01)


def test_only_packaged_models_have_recorded_results():
    assert stored("tiny") is None
    assert stored("../prune_records") is None
    assert {path.stem for path in FOLDER.glob("*.json")} == {DEFAULT, GEMMA3.name}


@pytest.mark.model
def test_the_recorded_importances_are_those_of_the_model(smollm2):
    found = stored(DEFAULT).importance
    text = ablation.text_ids(smollm2)
    assert len(text) == found.tokens
    own = ablation.surprise(smollm2, text)
    assert own == pytest.approx(found.surprise, abs=1e-4)
    layer, head = found.ranked_heads[-1]
    off = ablation.surprise(smollm2, text, heads=((layer, head),)) - own
    assert off == pytest.approx(found.heads[layer][head], abs=1e-3)


# ---------------------------------------------------------------- command line


def test_the_command_line_measures_one_edit(as_json):
    argv = ("lab", "prune", "--model", "tiny", "--neurons", "0.25", "--zeros", "2of4")
    found = as_json(*argv, "--method", "magnitude", "--repeats", "2", "the thing")
    assert found["effect"]["edit"] == "neurons:0.25+zeros:2of4:magnitude"
    edited = found["effect"]["edited"]
    assert edited["zeros"] * 2 == edited["weights"]
    assert found["prompt"] == "the thing"
    assert len(found["after"]) == prune_copy.TEXT
    assert found["effect"]["times"]["original"]["repeats"] == 2


def test_what_the_command_line_writes_is_what_is_recorded(as_json):
    found = read(json.loads(json.dumps(as_json("lab", "prune", "--model", "tiny", "--all"))))
    assert len(found.sweep.points) == 39
    assert len(found.importance.heads) == 2
    assert found.heads.kind == "heads"
    assert found.layers.kind == "layers"
    assert found.crossings.points[0].dense.repeats > 0
    assert [row.edit for row in found.removals.rows][-1] == "groups:1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--layers", "0,1"), "All 2 layers"),
        (("--layers", "7"), "no layer 7"),
        (("--heads", "0.9"), "no head 9"),
        (("--groups", "2"), "2 key/value heads"),
        (("--zeros", "1.5"), "zeros"),
        (("--zeros", "0.5", "--method", "taylor"), "taylor"),
        (("--neurons", "most"), "neurons"),
        (("--repeats", "0"), "repeats"),
        (("--model", "toy"), "weights"),
    ],
)
def test_the_command_line_says_what_cannot_be_done(cli, options, said):
    code, out, err = cli("lab", "prune", "--model", "tiny", *options)
    assert code == 2
    assert said in err
    assert not out


def test_lines_for_people(cli):
    code, out, _ = cli("lab", "prune", "--model", "tiny", "--layers", "1", "--repeats", "2")
    assert code == 0
    assert out.startswith("layers:1: perplexity")
    assert "× " in out
    code, out, _ = cli("lab", "prune", "--model", "tiny", "--importance", "--crossings")
    assert code == 0
    assert "off together: sum of single effects, joint effect" in out
    assert "CSR" in out


def test_lines_say_what_the_record_says():
    times = {"edited": {"median": 2.0}, "original": {"median": 5.0}, "ratio": 0.4}
    assert _times(times) == "step 2.0 ms, original 5.0 ms: × 0.40"
    size = {"nbytes": 2_000_000, "parameters": 500, "zeros": 1, "weights": 4}
    assert _size(size) == "2 MB · 500 parameters · 25.00% of the layers' weights are 0"
    point = {"zeros": 0.5, "tokens": 1, "dense": {"median": 0.25}, "sparse": {"median": 0.5}}
    machine = {"processor": "p", "threads": 2, "date": "today"}
    found = {
        "name": "m", "rows": 3, "columns": 4, "points": [point], "sparse_bytes": [[0.5, 12]],
        "dense_bytes": 48, "machine": machine, "done": True,
    }  # fmt: skip
    *_, line, _ = _crossings(found)
    assert line.split() == ["50%", "1", "250", "µs", "500", "µs", "25%"]
