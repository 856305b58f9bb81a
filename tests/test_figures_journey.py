"""The journey's data: which rows are drawn, that they are the right ones, and exact sums."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from core.decode.choose import choose
from core.engine.toy import open_toy
from core.lens import Lens, logit_lens
from core.model_info import ModelInfo
from core.settings import RunSpec, Settings
from core.trace import Forward, Generation, StepTrace, Token
from ui.figures.journey import journey_data, rise
from ui.figures.journey_choice import candidate_list, dice, filters
from ui.figures.journey_model import kv_cache, position_kind
from ui.figures.journey_rows import (
    Lanes,
    attention,
    changes,
    embeddings,
    lanes,
    owner,
    telling_layer,
)

LAYERS, HEADS, WIDTH = 3, 2, 4


def info(architecture="LlamaForCausalLM", layers=LAYERS, dtype="float32") -> ModelInfo:
    return ModelInfo(
        name="made-up",
        architecture=architecture,
        layers=layers,
        heads=HEADS,
        kv_heads=1,
        head_dim=2,
        width=WIDTH,
        vocabulary=4,
        context=64,
        parameters=1,
        bytes_in_memory=4,
        device="cpu",
        dtype=dtype,
        end_ids=(3,),
    )


def causal(total: int) -> np.ndarray:
    """[layer, head, total, total]: each row is a distribution over what came before."""
    rng = np.random.default_rng(7)
    weights = rng.random((LAYERS, HEADS, total, total)) * np.tri(total)
    return weights / weights.sum(axis=-1, keepdims=True)


def passes(prompt: int, total: int) -> tuple[list[Forward], Forward]:
    """The passes of a run, one after the other, and the same numbers in one pass."""
    rng = np.random.default_rng(3)
    embedding = rng.normal(size=(total, WIDTH)).astype("f4")
    residual = rng.normal(size=(LAYERS, total, WIDTH)).astype("f4")
    weights = causal(total)
    logits = np.log([0.5, 0.3, 0.15, 0.05])

    def cut(start: int, stop: int) -> Forward:
        return Forward(
            ids=tuple(range(stop)),
            start=start,
            embedding=embedding[start:stop].copy(),
            residual=residual[:, start:stop].copy(),
            normed=np.zeros(WIDTH),
            logits=logits.copy(),
            attention=weights[:, :, start:stop, :stop].copy(),
            cached=start,
        )

    later = [cut(start, start + 1) for start in range(prompt, total)]
    return [cut(0, prompt), *later], cut(0, total)


def tokens(total: int) -> list[Token]:
    return [
        Token(i, i, f"t{i}", f"t{i}", f"t{i}", b"t", False, "prompt", (i, i + 1), (i, i + 1))
        for i in range(total)
    ]


def step(settings=Settings(), index=0, logits=(0.5, 0.3, 0.15, 0.05)) -> StepTrace:
    forward = passes(2, 2)[1]
    row = Forward(
        forward.ids, 0, forward.embedding, forward.residual, forward.normed, np.log(logits)
    )
    return StepTrace(index, row, choose(row.logits, settings, step=index))


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


# ---------------------------------------------------------------- which positions


def test_a_short_text_is_drawn_whole():
    assert lanes(1) == Lanes((0,), 0)
    assert lanes(12, last=10) == Lanes(tuple(range(12)), 0)


def test_a_long_text_keeps_its_first_and_last_tokens():
    assert lanes(13, last=10) == Lanes((0, *range(3, 13)), 2)
    assert lanes(1000, last=3) == Lanes((0, 997, 998, 999), 996)


def test_a_gap_is_never_one_token_wide_and_nothing_is_lost():
    for total in range(1, 40):
        drawn = lanes(total)
        assert drawn.hidden != 1
        assert len(drawn.positions) + drawn.hidden == total


# ---------------------------------------------------------------- whose rows


def test_each_position_belongs_to_the_pass_that_computed_it():
    steps, _ = passes(3, 5)
    assert [owner(steps, p)[1] for p in range(5)] == [0, 1, 2, 0, 0]
    assert owner(steps, 4)[0] is steps[2]
    with pytest.raises(LookupError):
        owner(steps, 5)


def test_rows_of_all_steps_equal_those_of_one_pass():
    steps, whole = passes(3, 6)
    drawn = lanes(6)
    np.testing.assert_array_equal(embeddings(steps, drawn.positions), whole.embedding)
    np.testing.assert_allclose(changes(steps, drawn.positions), whole.change, rtol=1e-6)
    np.testing.assert_allclose(attention(steps, drawn), whole.attention.mean(axis=1), atol=1e-7)


def test_change_is_the_length_of_the_difference_over_the_length_before():
    one = Forward(
        (9,), 0, np.array([[3.0, 4.0]]), np.array([[[3.0, 9.0]]]), np.zeros(2), np.zeros(4)
    )
    np.testing.assert_allclose(changes([one], [0]), [[1.0]])


def test_attention_rows_attend_and_columns_are_attended_to():
    steps, _ = passes(2, 4)
    weights = attention(steps, lanes(4))
    assert weights.shape == (LAYERS, 4, 4)
    np.testing.assert_array_equal(np.triu(weights[0], k=1), 0)
    assert weights[1, 3, 0] == pytest.approx(steps[2].attention[1, :, 0, 0].mean())


def test_a_gap_holds_the_sum_of_what_it_hides():
    steps, whole = passes(6, 8)
    drawn = lanes(8, last=3)
    assert drawn == Lanes((0, 5, 6, 7), 4)
    weights = attention(steps, drawn)
    assert weights.shape == (LAYERS, 4, 5)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    mean = whole.attention.mean(axis=1)
    np.testing.assert_allclose(weights[:, -1, 4], mean[:, 7, 1:5].sum(axis=-1))
    np.testing.assert_allclose(weights[:, 0, 4], 0)  # the first token sees nothing hidden


def test_no_attention_where_a_pass_kept_none():
    steps, _ = passes(2, 3)
    bare = Forward(
        *(
            getattr(steps[0], f)
            for f in ("ids", "start", "embedding", "residual", "normed", "logits")
        )
    )
    assert attention([bare, *steps[1:]], lanes(3)) is None


def test_a_layer_without_attention_stays_unknown():
    steps, _ = passes(2, 3)
    kept = [replace(s, attending=(1,), attention=s.attention[1:2].copy()) for s in steps]
    weights = attention(kept, lanes(3))
    assert np.isnan(weights[[0, *range(2, LAYERS)]]).all()
    np.testing.assert_allclose(weights[1], attention(steps, lanes(3))[1])
    assert telling_layer(weights, 3) == 1
    assert telling_layer(weights[:, :2, :2], 2) == 1  # nothing in between


def test_the_telling_layer_leaves_out_the_sink_and_the_token_itself():
    weights = np.zeros((3, 3, 3))
    weights[0, 2] = [0.9, 0.1, 0.0]
    weights[1, 2] = [0.2, 0.3, 0.5]
    weights[2, 2] = [0.0, 0.2, 0.8]
    assert telling_layer(weights, 3) == 1
    assert telling_layer(weights[:, :2, :2], 2) == 0  # nothing in between
    assert telling_layer(None, 3) is None


# ---------------------------------------------------------------- the lens


def test_the_rise_is_the_largest_step_up():
    found = rise(np.array([0.0, 0.0001, 0.02, 0.07, 0.77]))
    assert found == {"layer": 4, "before": 0.07, "after": 0.77, "final": 0.77, "since": 2}


def test_a_token_can_rise_first_and_fall_below_the_floor():
    found = rise(np.array([0.8, 0.5, 0.004]))
    assert (found["layer"], found["before"], found["since"]) == (0, 0.0, None)
    assert rise(np.array([])) is None


# ---------------------------------------------------------------- the choice


def test_candidates_show_both_probabilities_and_what_cut_them():
    made = candidate_list(step(Settings(top_k=3, top_p=0.7)), lambda i: "abcd"[i])
    rows = made["candidates"]
    assert [(r["label"], r["rank"], r["removed"]) for r in rows] == [
        ("a", 1, None),
        ("b", 2, None),
        ("c", 3, "top_p"),
        ("d", 4, "top_k"),
    ]
    assert [r["model"] for r in rows] == pytest.approx([0.5, 0.3, 0.15, 0.05])
    assert [r["filtered"] for r in rows] == pytest.approx([0.625, 0.375, 0, 0])
    assert made["others"] == {"count": 0, "model": 0.0, "filtered": 0.0}


def test_named_candidates_and_the_others_make_one():
    law = np.random.default_rng(1).dirichlet(np.ones(60))
    worst = int(law.argmin())
    made = candidate_list(step(Settings(forced=((0, worst),)), logits=law), str)
    rows, others = made["candidates"], made["others"]
    assert len(rows) == 11
    assert rows[-1]["chosen"]
    assert rows[-1]["rank"] == 60
    assert others["count"] == 49
    for column in ("model", "filtered"):
        assert sum(r[column] for r in rows) + others[column] == pytest.approx(1)


def test_an_impossible_token_has_no_logit_and_no_filter_to_blame():
    with np.errstate(divide="ignore"):
        rows = candidate_list(step(logits=(0.7, 0.3, 0, 0)), str)["candidates"]
    assert [r["logit"] is None for r in rows] == [False, False, True, True]
    assert rows[3]["removed"] is None
    json.dumps(rows, allow_nan=False)


def test_filters_say_what_they_leave():
    made = filters(step(Settings(temperature=0.5, top_k=3)).choice)
    assert [(f["name"], f["parameter"], f["survivors"]) for f in made] == [
        ("temperature", 0.5, 4),
        ("top_k", 3, 3),
        ("top_p", None, 3),
        ("min_p", None, 3),
    ]


def test_the_needle_falls_on_the_chosen_stretch():
    for seed in range(30):
        made = dice(step(Settings(seed=seed, top_k=3)), str)
        low, high = made["chosen"]
        assert low <= made["u"] < high
        assert made["would"] is None
        assert [s["id"] for s in made["segments"]] == [0, 1, 2]
        assert made["segments"][0]["to"] == pytest.approx(0.5 / 0.95)
        assert made["rest"]["count"] == 0


def test_greedy_has_no_needle_and_a_forced_token_tells_of_the_dice():
    assert dice(step(Settings(strategy="greedy")), str)["u"] is None
    settings = Settings(seed=5)
    fair = step(settings)
    forced = step(Settings(seed=5, forced=((0, 3),)))
    made = dice(forced, str)
    assert made["rule"] == "forced"
    assert made["would"] == str(fair.choice.id)
    assert dice(step(Settings(top_k=1, forced=((0, 3),))), str)["chosen"] is None


def test_a_long_tail_is_one_segment():
    law = np.concatenate([[0.5], np.full(1000, 0.0005)])
    made = dice(step(logits=law), str)
    assert len(made["segments"]) == 1
    assert made["rest"] == {"count": 1000, "from": pytest.approx(0.5)}


# ---------------------------------------------------------------- the model


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("LlamaForCausalLM", "rotary"),
        ("Gemma3ForCausalLM", "rotary"),
        ("Qwen2ForCausalLM", "rotary"),
        ("GPTNeoXForCausalLM", "rotary"),
        ("GPTNeoForCausalLM", "learned"),
        ("GPT2LMHeadModel", "learned"),
        ("OPTForCausalLM", "learned"),
        ("BloomForCausalLM", "alibi"),
        ("SomethingNewForCausalLM", "unknown"),
    ],
)
def test_how_position_enters(architecture, kind):
    assert position_kind(info(architecture)) == kind
    assert position_kind(info(architecture, layers=0)) == "none"


def test_the_cache_is_a_product():
    made = kv_cache(info(), 5)
    assert (made["per_token"], made["bytes"], made["at_most"]) == (48, 240, False)
    assert kv_cache(info(dtype="torch.bfloat16"), 5)["bytes"] == 120
    assert kv_cache(info("Gemma3ForCausalLM"), 5)["at_most"]


# ---------------------------------------------------------------- all together


def run(made=3, prompt=2) -> tuple[Generation, list[Token]]:
    steps, _ = passes(prompt, prompt + made - 1)
    settings = Settings(max_new=made)
    traces = tuple(StepTrace(i, f, choose(f.logits, settings, step=i)) for i, f in enumerate(steps))
    names = tokens(prompt + made)
    spec = RunSpec(settings=settings)
    return Generation(spec, tuple(names[:prompt]), traces, "output_limit"), names


def some_lens() -> Lens:
    return Lens(
        np.array([[1, 0], [0, 1], [0, 1]]),
        np.array([[0.6, 0.2], [0.5, 0.3], [0.9, 0.1]]),
        0,
        np.array([0.2, 0.5, 0.9]),
        np.array([2, 1, 1]),
    )


def test_data_of_a_later_step_holds_all_rows_so_far():
    generation, names = run()
    view = generation.steps[1]
    data = journey_data(generation, view, names, info=info(), label=str, lens=some_lens())
    assert [lane["position"] for lane in data["lanes"]] == [0, 1, 2]
    assert data["joins"]["position"] == 3
    assert (data["read"], data["new"], data["cached"]) == (3, 1, 2)
    assert unpacked(data["embedding"]).reshape(3, WIDTH)[2] == pytest.approx(
        view.forward.embedding[0]
    )
    assert unpacked(data["attention"]).shape == (LAYERS * 3 * 3,)
    assert unpacked(data["change"]).reshape(LAYERS, 3)[:, 2] == pytest.approx(
        view.forward.change[:, 0]
    )
    assert data["lens"]["guesses"] == ["1", "0", "0"]
    assert data["lens"]["agrees"] == [False, True, True]
    json.dumps(data, allow_nan=False)


def test_the_loop_stops_only_at_its_last_step():
    generation, names = run()
    stops = [
        journey_data(generation, view, names, info=info(), label=str, lens=None)["stop"]
        for view in generation.steps
    ]
    assert stops == [None, None, "output_limit"]


def test_a_wide_vector_is_sent_in_strides():
    forward = passes(2, 2)[1]
    wide = Forward(
        forward.ids,
        0,
        np.ones((2, 2500), dtype="f4"),
        np.ones((LAYERS, 2, 2500), dtype="f4"),
        np.zeros(2500),
        forward.logits,
    )
    view = StepTrace(0, wide, choose(wide.logits, Settings(), step=0))
    generation = Generation(RunSpec(), tuple(tokens(2)), (view,))
    data = journey_data(generation, view, tokens(3), info=info(), label=str, lens=None)
    assert (data["width"], data["stride"], data["sent"]) == (2500, 3, 834)
    assert data["attention"] == ""


def test_the_toy_has_no_layers_and_no_vectors():
    toy = open_toy()
    ids = toy.vocabulary.encode("the sun").ids
    forward = toy.forward(ids)
    view = StepTrace(0, forward, choose(forward.logits, Settings(), step=0))
    names = toy.vocabulary.tokens((*ids, view.choice.id), len(ids))
    generation = Generation(RunSpec(model="toy"), names[:-1], (view,))
    data = journey_data(
        generation, view, names, info=toy.info, label=toy.vocabulary.label, lens=None
    )
    assert (data["layers"], data["width"], data["layer"]) == (0, 0, None)
    assert (data["embedding"], data["attention"], data["position"]) == ("", "", "none")
    assert data["cache"]["bytes"] == 0


def test_a_real_engine_fills_every_part(tiny):
    ids = list(range(5, 25))
    first = tiny.forward(ids)
    settings = Settings(forced=((0, 30),))
    steps = [StepTrace(0, first, choose(first.logits, settings, step=0))]
    second = tiny.forward([*ids, 30], prompt_length=20)
    view = StepTrace(1, second, choose(second.logits, settings, step=1))
    names = tiny.vocabulary.tokens((*ids, 30, view.choice.id), 20)
    generation = Generation(RunSpec(settings=settings), names[:20], (*steps, view))
    lens = logit_lens(tiny, second, view.choice.id)
    data = journey_data(
        generation, view, names, info=tiny.info, label=tiny.vocabulary.label, lens=lens
    )
    rows = len(data["lanes"])
    assert (rows, data["hidden"]) == (11, 10)
    weights = unpacked(data["attention"]).reshape(tiny.info.layers, rows, rows + 1)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert data["lens"]["chosen"][-1] == pytest.approx(view.choice.probability_model, abs=1e-5)
    assert max(np.abs(unpacked(data["embedding"]))) > 0
