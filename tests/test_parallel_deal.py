"""Who gets what, and how long stages idle: laws with exact answers, no processes."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.faults import Fault
from core.lab.parallel import offload, replicas
from core.lab.parallel.deal import (
    deal,
    deal_heads,
    even_ranks,
    kind_of,
    most_ranks,
    plan_of,
)
from core.lab.parallel.pipeline import _bars, _timeline
from core.lab.parallel.recorded import key_of
from core.lab.parallel.records import OffloadRun, PipelineRun, ReplicaRun, TensorRun
from core.lab.parallel.room import check_room, weights_of
from core.lab.parallel.stages import (
    Bar,
    bubble,
    check_micro_batches,
    ideal_bubble,
    layer_cost,
    stages_of,
    unequal_bubble,
)
from core.model_info import ModelInfo


def info(**changes):
    smollm2 = {
        "name": "smollm2-135m", "architecture": "LlamaForCausalLM", "layers": 30, "heads": 9,
        "kv_heads": 3, "head_dim": 64, "width": 576, "vocabulary": 49152, "context": 8192,
        "parameters": 134_515_008, "bytes_in_memory": 538_060_032, "device": "cpu",
        "dtype": "float32", "end_ids": (2,), "intermediate": 1536, "gated": True,
    }  # fmt: skip
    return ModelInfo(**{**smollm2, **changes})


GEMMA = {
    "layers": 18, "heads": 4, "kv_heads": 1, "head_dim": 256, "width": 640,
    "vocabulary": 262144, "intermediate": 2048,
}  # fmt: skip


@given(count=st.integers(0, 500), ranks=st.integers(1, 8))
def test_everything_is_dealt_out_once_in_its_order_and_nearly_evenly(count, ranks):
    spans = deal(count, ranks)
    assert [i for a, b in spans for i in range(a, b)] == list(range(count))
    sizes = [b - a for a, b in spans]
    assert max(sizes) - min(sizes) <= 1


@given(kv=st.integers(1, 8), group=st.integers(1, 8), ranks=st.integers(1, 8))
def test_each_rank_has_just_the_kv_heads_that_its_queries_read(kv, group, ranks):
    heads = kv * group
    if ranks > heads:
        with pytest.raises(Fault, match="ranks"):
            deal_heads(heads, kv, ranks)
        return
    dealt = deal_heads(heads, kv, ranks)
    assert [h for (a, b), _ in dealt for h in range(a, b)] == list(range(heads))
    for (a, b), (c, d) in dealt:
        assert b > a
        assert {h // group for h in range(a, b)} == set(range(c, d))
        # Within a rank every KV head serves equally many queries.
        assert len({sum(h // group == k for h in range(a, b)) for k in range(c, d)}) == 1
    # Nobody keeps a copy while there are KV heads for all.
    kept = [k for _, (c, d) in dealt for k in range(c, d)]
    assert (kept == list(range(kv))) == (ranks <= kv)


@pytest.mark.parametrize(
    ("heads", "kv", "ranks", "kind", "shares"),
    [
        (9, 3, 3, "even", [3, 3, 3]),
        (9, 3, 2, "uneven", [6, 3]),
        (9, 3, 4, "uneven", [2, 1, 3, 3]),
        (4, 1, 2, "copied", [2, 2]),
        (4, 1, 4, "copied", [1, 1, 1, 1]),
        (4, 1, 3, "uneven", [2, 1, 1]),
        (32, 8, 4, "even", [8, 8, 8, 8]),
        (4, 2, 2, "even", [2, 2]),
    ],
)
def test_what_can_be_done_with_so_many_heads(heads, kv, ranks, kind, shares):
    assert kind_of(heads, kv, ranks) == kind
    assert [b - a for (a, b), _ in deal_heads(heads, kv, ranks)] == shares


def test_even_numbers_of_ranks_divide_the_kv_heads():
    assert even_ranks(9, 3, 4) == (3,)
    assert even_ranks(4, 1, 4) == ()
    assert even_ranks(32, 8, 8) == (2, 4, 8)


def test_smollm2_on_three_ranks():
    plan = plan_of(info(), 3)
    assert plan.attention == "even"
    assert [hand.heads for hand in plan.hands] == [(0, 3), (3, 6), (6, 9)]
    assert [hand.kv_heads for hand in plan.hands] == [(0, 1), (1, 2), (2, 3)]
    assert [hand.neurons for hand in plan.hands] == [(0, 512), (512, 1024), (1024, 1536)]
    assert [hand.rows for hand in plan.hands] == [(0, 16384), (16384, 32768), (32768, 49152)]
    assert plan.layer_bytes() == 2 * 30 * 576 * 4 == 138_240
    assert plan.layer_bytes(5) == 691_200
    assert plan_of(info(), 2, "whole").layer_bytes() == 69_120
    assert plan_of(info(dtype="bfloat16"), 3).layer_bytes() == 69_120
    assert plan_of(info(**GEMMA), 2).layer_bytes() == 92_160


def test_weights_of_a_rank_by_counting():
    norms = (2 * 30 + 1) * 576 * 4
    # What a real rank was measured to hold: 179,447,040 bytes, norms included.
    assert weights_of(info(), plan_of(info(), 3)) == (179_447_040 - norms,) * 3


def test_what_does_not_fit_is_not_started():
    check_room(0, 1)
    fault = _refused(lambda: check_room(10**15, 3))
    assert fault.code == "ranks_no_room"
    assert fault.params["needed"] == "1,000,000.9"


@pytest.mark.parametrize("ranks", [-1, 0, 1, 99])
def test_too_few_and_too_many_ranks_are_refused(ranks):
    with pytest.raises(Fault) as caught:
        plan_of(info(), ranks)
    assert caught.value.code == "ranks_out_of_range"
    assert caught.value.params["high"] == most_ranks()


def test_stages_by_layers_and_by_cost():
    by_layers, by_cost = stages_of(info(), 2), stages_of(info(), 2, "cost")
    assert by_layers.layers == ((0, 15), (15, 30))
    # The LM head costs exactly as much as eight layers: 19 = 11 + 8.
    assert by_cost.layers == ((0, 19), (19, 30))
    assert by_cost.cost[0] == by_cost.cost[1] == 67_239_936
    assert by_layers.cost == (15 * 3_538_944, 15 * 3_538_944 + 28_311_552)
    # Gemma's LM head costs more than all its layers, but every stage keeps one.
    assert stages_of(info(**GEMMA), 2, "cost").layers == ((0, 17), (17, 18))
    assert stages_of(info(layers=2), 2).layers == ((0, 1), (1, 2))
    with pytest.raises(Fault):
        stages_of(info(layers=2), 3)
    assert "allowed" in _refused(lambda: stages_of(info(), 2, "luck")).params


def test_a_feed_forward_part_without_a_gate_is_a_matrix_less():
    assert layer_cost(info()) - layer_cost(info(gated=False)) == 576 * 1536


def _refused(call):
    with pytest.raises(Fault) as caught:
        call()
    return caught.value


@given(layers=st.integers(4, 40), stages=st.integers(2, 4), head=st.integers(1, 10**6))
def test_no_other_cut_has_a_cheaper_dearest_stage(layers, stages, head):
    small = info(layers=layers, vocabulary=head)
    plan = stages_of(small, stages, "cost")
    assert plan.layers[0][0] == 0
    assert plan.layers[-1][1] == layers
    assert all(b > a for a, b in plan.layers)
    each = (plan.cost[0]) // (plan.layers[0][1] - plan.layers[0][0])
    last = plan.cost[-1] - each * (plan.layers[-1][1] - plan.layers[-1][0])
    for keeps in range(1, layers - stages + 2):
        rest = layers - keeps
        dearest = max(-(-rest // (stages - 1)) * each, keeps * each + last)
        assert max(plan.cost) <= dearest


def test_bubbles_by_hand():
    assert [round(ideal_bubble(2, n), 4) for n in (1, 2, 4, 8)] == [0.5, 0.3333, 0.2, 0.1111]
    assert ideal_bubble(4, 1) == 0.75
    # Two stages, two pieces of 10 ms each: 30 ms, of which each stage works 20.
    bars = [Bar(0, 0, 0, 10), Bar(0, 1, 10, 20), Bar(1, 0, 10, 20), Bar(1, 1, 20, 30)]
    assert bubble(bars) == pytest.approx(1 / 3)
    assert unequal_bubble([10, 10], 2) == pytest.approx(1 / 3)
    # Stages of 10 and 30 ms: 10 + 30 + 30 = 70 ms; they work 20 and 60.
    assert unequal_bubble([10, 30], 2) == pytest.approx(1 - 80 / 140)


@given(st.lists(st.floats(1, 100), min_size=2, max_size=4), st.sampled_from((1, 2, 4, 8)))
def test_the_formula_for_unequal_stages_is_the_schedule(cost, count):
    """Piece i starts on a stage when the stage is free and the stage before has finished it."""
    ends = [[0.0] * count for _ in cost]
    bars = []
    for stage, long in enumerate(cost):
        for piece in range(count):
            ready = ends[stage - 1][piece] if stage else 0.0
            free = ends[stage][piece - 1] if piece else 0.0
            start = max(ready, free)
            ends[stage][piece] = start + long
            bars.append(Bar(stage, piece, start, start + long))
    assert bubble(bars) == pytest.approx(unequal_bubble(cost, count))
    if len(set(cost)) == 1:
        assert bubble(bars) == pytest.approx(ideal_bubble(len(cost), count))


def test_micro_batches_divide_the_batch():
    assert [check_micro_batches(n) for n in (1, 2, 4, 8)] == [1, 2, 4, 8]
    assert _refused(lambda: check_micro_batches(3)).code == "bad_micro_batches"


def test_the_pass_of_median_length_is_drawn_in_milliseconds():
    """Two stages, one piece; passes of 3, 1 and 2 s on a clock that did not begin at 0."""

    def answers(stage):
        return [
            {"bars": [[100.0, 100.0 + stage]]},
            {"bars": [[100.0 + stage, 100.0 + 2 * stage]]},
        ]

    passes = [_bars(answers(seconds)) for seconds in (1.5, 0.5, 1.0)]
    assert passes[0] == (Bar(0, 0, 0.0, 1500.0), Bar(1, 0, 1500.0, 3000.0))
    found = _timeline(1, passes, 0.0, PipelineRun(stages_of(info(), 2)))
    assert found.bars == (Bar(0, 0, 0.0, 1000.0), Bar(1, 0, 1000.0, 2000.0))
    assert (found.took.low, found.took.median, found.took.high) == (1000, 2000, 3000)
    assert found.bubble == found.ideal == found.unequal == 0.5


class Replies:
    """A crew without processes: a step takes rank 0 as many milliseconds as texts are read,
    and rank 1 ten more."""

    def __init__(self, folder):
        self.folder, self.texts = folder, 1

    def ask(self, do, *, only=None, **rest):
        yield
        self.texts = rest.get("copies", self.texts)
        ranks = (0, 1) if only is None else (only,)
        return [{"ms": self.texts + 10.0 * rank} for rank in ranks]

    def ask_each(self, do, rests):
        yield
        return [{"weights": weights, "places": []} for weights in (1000, 400)]


def test_of_two_copies_the_slower_one_is_waited_for(tmp_path):
    engine = SimpleNamespace(info=info())
    *_, found = replicas._measured(Replies(tmp_path), [5], ReplicaRun(), engine)
    waits = {(one.replicas, one.batch): one.step.median for one in found.servings}
    assert waits == {
        (n, batch): batch + 10 * (n == 2) for n in (1, 2) for batch in (1, 2, 4, 8, 16)
    }


def test_the_one_with_room_is_the_first_worker(tmp_path):
    for rank in (0, 1):
        np.savez(tmp_path / f"step{rank}.npz", logits=np.array([1.0, 2.0 + rank]))
    engine = SimpleNamespace(info=info())
    *_, found = offload._measured(Replies(tmp_path), [5], OffloadRun(0.5), engine)
    assert (found.whole_step.median, found.step.median) == (1, 11)
    assert (found.whole_bytes, found.held_bytes, found.difference) == (1000, 400, 1.0)


def test_shares_of_the_heads():
    assert plan_of(info(), 2).balance == (6 / 9, 3 / 9)


def test_a_record_answers_one_question():
    runs = (
        TensorRun(plan_of(info(), 3)), TensorRun(plan_of(info(), 3, "whole")),
        TensorRun(plan_of(info(), 2)), PipelineRun(stages_of(info(), 2)),
        PipelineRun(stages_of(info(), 2, "cost")), OffloadRun(0.25), OffloadRun(0.5),
        ReplicaRun(dtype="float32"), ReplicaRun(dtype="bfloat16"),
    )  # fmt: skip
    assert len({key_of("m", run) for run in runs}) == len(runs)
    assert not {key_of("m", run) for run in runs} & {key_of("n", run) for run in runs}


def test_an_untied_head_is_a_table_more():
    table = 49152 * 576
    untied = info(parameters=info().parameters + table)
    tied, more = (sum(weights_of(each, plan_of(each, 3))) for each in (info(), untied))
    assert more - tied == 4 * table
