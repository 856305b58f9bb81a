"""The loop: why it stops, and that a run is a pure function of its question."""

import dataclasses

import pytest

from core.decode import Stopped, choose, generate, run, stop_reason
from core.engine.toy import ToyEngine, open_toy, parse_table
from core.faults import Fault
from core.settings import RunSpec, Settings

GREEDY = Settings(strategy="greedy")


@pytest.fixture(scope="module")
def toy():
    return open_toy()


def chosen(generation):
    return [step.choice.id for step in generation.steps]


def words(engine, generation):
    return engine.vocabulary.text(chosen(generation))


def spec(prompt="The", **settings):
    return RunSpec(model="toy", prompt=prompt, settings=Settings(**settings))


def test_greedy_follows_the_table_to_the_end_token(toy):
    made = run(toy, spec(strategy="greedy"))
    assert words(toy, made) == "sun shines brightly <end>"
    assert made.stop == "end_token"
    assert [s.choice.probability_model for s in made.steps] == pytest.approx([0.5, 0.4, 0.45, 0.8])
    assert made.logprob == pytest.approx(-2.6311, abs=1e-4)
    assert made.perplexity == pytest.approx(1.9305, abs=1e-4)
    assert made.ids == (*(t.id for t in made.prompt), 0, 2, 4, 7)
    assert [s.index for s in made.steps] == [0, 1, 2, 3]


def test_an_end_token_in_the_prompt_ends_nothing(toy):
    made = run(toy, spec("The <end>", strategy="greedy"))
    assert made.prompt[1].special
    assert len(made.steps) == 4


def test_the_output_limit(toy):
    made = run(toy, spec(strategy="greedy", max_new=2))
    assert (words(toy, made), made.stop) == ("sun shines", "output_limit")


def test_an_end_token_at_the_output_limit_is_an_end_token(toy):
    assert run(toy, spec(strategy="greedy", max_new=4)).stop == "end_token"


def test_the_context_limit(toy):
    class Small(ToyEngine):
        @property
        def info(self):
            return dataclasses.replace(super().info, context=5)

    small = Small(parse_table({"vocab": ["a", "b"], "next": {"*": [0.6, 0.4]}}))
    made = run(small, spec("x y z", strategy="greedy"))
    assert (len(made.steps), made.stop) == (2, "context_limit")
    assert len(made.ids) == 5
    with pytest.raises(Fault, match="The prompt has 5 tokens, but toy reads at most 4 here"):
        run(small, spec("1 2 3 4 5"))


def test_stop_reasons_by_precedence(toy):
    info = toy.info
    assert stop_reason(info, GREEDY, 1, []) is None
    assert stop_reason(info, GREEDY, 1, [7]) == "end_token"
    assert stop_reason(info, GREEDY, 1, [7, 0]) is None
    assert stop_reason(info, GREEDY, 1, [0] * 24) == "output_limit"
    assert stop_reason(info, GREEDY, info.context - 1, [0]) == "context_limit"


def test_some_steps_of_a_run_are_the_beginning_of_it(toy):
    whole = run(toy, spec(seed=3))
    for steps in range(len(whole.steps) + 1):
        part = run(toy, spec(seed=3), steps=steps)
        assert [s.choice for s in part.steps] == [s.choice for s in whole.steps[:steps]]
        assert part.stop == (whole.stop if steps == len(whole.steps) else None)


def test_the_same_question_gets_the_same_run_and_another_seed_another(toy):
    runs = {seed: chosen(run(toy, spec(seed=seed))) for seed in range(12)}
    assert all(chosen(run(open_toy(), spec(seed=seed))) == ids for seed, ids in runs.items())
    assert len(set(map(tuple, runs.values()))) > 3


def test_forcing_forks_and_taking_it_back_restores_the_run(toy):
    before = run(toy, spec(seed=3))
    forked = run(toy, spec(seed=3, forced=((1, 3),)))
    assert forked.steps[0].choice == before.steps[0].choice
    assert (forked.steps[1].choice.id, forked.steps[1].choice.rule) == (3, "forced")
    assert [s.choice for s in run(toy, spec(seed=3)).steps] == [s.choice for s in before.steps]


def test_an_impossible_forced_token_costs_everything(toy):
    made = run(toy, spec(forced=((0, 2),), max_new=1))
    assert made.steps[0].choice.probability_model == 0
    assert (made.logprob, made.perplexity) == (float("-inf"), float("inf"))


def test_listed_choices_are_slim_and_can_be_made_again(toy):
    made = run(toy, spec(seed=1, top_k=2))
    for step in made.steps:
        assert step.choice.stages == ()
        full = choose(step.forward.logits, made.spec.settings, step=step.index)
        assert full.slim() == step.choice
        assert len(full.stages) == 4


def test_a_run_can_be_stopped_between_tokens(toy):
    seen = []

    def once(step):
        seen.append(step)
        if step.index == 1:
            raise Stopped

    made = run(toy, spec(strategy="greedy"), on_step=once)
    assert (len(seen), len(made.steps), made.stop) == (2, 2, "user")


def test_whatever_the_callback_raises_ends_the_generator(toy):
    def cancel(step):
        raise KeyError("newer click")

    ids = toy.vocabulary.encode("The").ids
    turns = generate(toy, ids, GREEDY, on_step=cancel)
    with pytest.raises(KeyError):
        next(turns)
    assert list(turns) == []


def test_a_generator_reads_only_as_far_as_it_is_asked(toy):
    turns = generate(toy, toy.vocabulary.encode("The").ids, GREEDY)
    assert next(turns).choice.id == 0
    assert next(turns).forward.ids[-1] == 0


def test_an_empty_prompt_is_refused_before_the_first_step(toy):
    with pytest.raises(Fault, match="The prompt is empty"):
        generate(toy, (), GREEDY)
    with pytest.raises(Fault, match="The prompt is empty"):
        run(toy, spec("   "))


def test_a_chat_needs_a_template(toy):
    with pytest.raises(Fault, match="without a chat template"):
        run(toy, dataclasses.replace(spec(), chat=True))
