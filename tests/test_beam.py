"""Beam search by hand: the classic tables, the losers, the limits, stopping by the user."""

import json
import math

import numpy as np
import pytest

from core.beam_records import Loss
from core.decode import BeamRun, Stopped, beam_search, exhaustive, generate, replay, search
from core.engine.toy import ToyEngine, open_toy, parse_table
from core.engine.toy_classics import CLASSICS, FOLDER, classic, classic_path
from core.faults import Fault
from core.settings import MAX_BEAMS, BeamSettings, Settings
from tests.beams import random_provider, table_provider
from tests.decoding import TABLE

CASES = [
    (name, answer)
    for name in CLASSICS
    for answer in json.loads(classic_path(name).read_text(encoding="utf-8"))["answers"]
]


def content(name):
    return json.loads(classic_path(name).read_text(encoding="utf-8"))


def found_in(name, width, alpha=0.0, stop="best", **more):
    settings = BeamSettings(
        width=width, length_penalty=alpha, stop=stop, max_new=content(name)["max_new"], **more
    )
    table = classic(name)
    return search(table_provider(table), settings, table.end_ids)


def words(name, hypothesis):
    return [classic(name).vocab[token] for token in hypothesis.tokens]


# --- tables with answers worked out by hand


@pytest.mark.parametrize(("name", "answer"), CASES)
def test_classics(name, answer):
    found = found_in(name, answer["width"], answer["alpha"], answer["stop"])
    best = found.hypotheses[0]
    assert words(name, best) == answer["tokens"]
    assert math.exp(best.logprob) == pytest.approx(answer["probability"])
    length = len(answer["tokens"])
    assert best.score == pytest.approx(math.log(answer["probability"]) / length ** answer["alpha"])


def test_every_classic_has_a_file_and_no_other_is_read():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CLASSICS)
    with pytest.raises(KeyError):
        classic_path("../toy_default")


def test_the_law_of_the_shared_table():
    (law,) = TABLE["beam"]
    engine = ToyEngine(parse_table(law))
    for prompt in ("The", "A much longer prompt of seven words"):
        ids = engine.vocabulary.encode(prompt).ids
        for width, expected in ((1, law["greedy"]), (2, law["width_2_best"])):
            settings = BeamSettings(
                width=width, length_penalty=law["alpha"], max_new=law["max_new"]
            )
            best = beam_search(engine, ids, settings).hypotheses[0]
            assert [law["vocab"][token] for token in best.tokens] == expected["tokens"]
            assert best.logprob == pytest.approx(expected["logprob"], abs=1e-4)


def test_the_losers_of_a_step_and_what_they_lost_by():
    found = found_in("early_stopping", 2, stop="full")
    first, second, third = found.steps
    shown = [
        (classic("early_stopping").vocab[c.token], round(math.exp(c.logprob), 6), c.fate)
        for c in second.candidates
    ]
    assert shown == [
        ("walk", 0.56, "live"),
        ("<end>", 0.24, "finished"),
        ("<end>", 0.18, "lost"),
        ("far", 0.02, "live"),
    ]
    assert second.candidates[2].loss == Loss(
        "end_outside_beam", (1, 1), pytest.approx(math.log(0.24 / 0.18))
    )
    assert (first.live, second.live, second.finished) == ((0, 1), (0, 3), (1,))
    assert (first.bar, second.bar) == (None, None)
    assert math.exp(third.bar) == pytest.approx(0.168)
    assert math.exp(third.hope) == pytest.approx(0.336)
    assert (found.stop, found.forwards, found.tokens_evaluated) == ("full", 5, 4)


def test_a_better_hypothesis_displaces_a_worse_one():
    found = found_in("early_stopping", 2)
    assert [words("early_stopping", h)[-2] for h in found.hypotheses] == ["home", "we"]
    (gone,) = found.others
    assert words("early_stopping", gone) == ["we", "walk", "<end>"]
    assert found.steps[3].displaced == (gone.node,)
    assert gone.loss == Loss("worse_hypothesis", (1, 1), pytest.approx(math.log(0.24 / 0.168)))
    assert found.stop == "no_beam_can_win"


def test_the_penalty_ranks_again_and_knows_when_the_search_would_differ():
    name = "length_penalty"
    stored = found_in(name, 2)
    again = replay(stored, BeamSettings(width=2, length_penalty=1, max_new=5))
    assert again.verdict == "same"
    assert words(name, again.search.hypotheses[0])[1] == "falls"
    full = found_in(name, 2, stop="full")
    assert len(full.steps) == 3
    further = replay(full, BeamSettings(width=2, length_penalty=1, max_new=5))
    assert (further.verdict, further.search.stop) == ("further", None)
    earlier = replay(stored, full.settings)
    assert (earlier.verdict, earlier.search) == ("earlier", full)


def test_a_wider_beam_than_the_vocabulary_has_no_ghosts():
    provider = random_provider(3, 3, zeros=0)
    found = search(provider, BeamSettings(width=16, max_new=2), ())
    assert len(found.steps[0].candidates) == 3
    assert len(found.hypotheses) == 9
    assert all(h.logprob > -math.inf for h in found.hypotheses)
    certain = search(lambda p: [[0, -np.inf]] * len(p), BeamSettings(width=5, max_new=3), ())
    assert [h.tokens for h in certain.hypotheses] == [(0, 0, 0)]
    assert certain.hypotheses[0].score == 0


def test_ties_go_to_the_earlier_beam_and_the_lower_id():
    found = search(lambda p: [[0.0, 0.0, 0.0]] * len(p), BeamSettings(width=2, max_new=2), ())
    assert [h.tokens for h in found.hypotheses] == [(0, 0), (0, 1)]


def test_a_beam_that_ends_everywhere_leaves_none():
    found = search(lambda p: [[0.0, 0.0]] * len(p), BeamSettings(width=3, max_new=9), (0, 1))
    assert (found.stop, len(found.steps), len(found.hypotheses)) == ("no_beam_left", 1, 2)
    assert found.steps[0].hope is None


@pytest.mark.parametrize("stop", ["full", "best"])
def test_several_end_tokens_widen_what_is_looked_at(stop):
    provider = random_provider(5, 30, zeros=0)
    settings = BeamSettings(width=3, stop=stop, max_new=4)
    found = search(provider, settings, (0, 1, 2))
    assert len(found.steps[0].candidates) == 12
    assert len(search(provider, settings, ()).steps[0].candidates) == 6
    assert all(len(step.live) == 3 for step in found.steps[:-1])


def test_nbest_shows_fewer_and_hides_none():
    found = found_in("wider_is_worse", 3, nbest=1)
    assert len(found.hypotheses) == 1
    assert len(found.others) == 2


# --- on an engine


def test_a_beam_of_one_is_the_greedy_run():
    engine = open_toy()
    ids = engine.vocabulary.encode("The").ids
    greedy = [s.choice.id for s in generate(engine, ids, Settings(strategy="greedy"))]
    found = beam_search(engine, ids, BeamSettings(width=1, length_penalty=2))
    assert [list(h.tokens) for h in found.hypotheses] == [greedy]
    assert found.stop == "full"


def test_a_beam_of_one_is_greedy_on_a_transformer(tiny):
    for prompt in ("the", "the 国 é"):
        ids = tiny.vocabulary.encode(prompt).ids
        settings = Settings(strategy="greedy", max_new=12)
        greedy = [s.choice.id for s in generate(tiny, ids, settings)]
        found = beam_search(tiny, ids, BeamSettings(width=1, max_new=12))
        assert [list(h.tokens) for h in found.hypotheses] == [greedy]
        assert found.tokens_evaluated == len(ids) + len(greedy) - 1


def test_a_search_twice_is_the_same_search(tiny):
    ids = tiny.vocabulary.encode("of the").ids
    settings = BeamSettings(width=3, length_penalty=1, max_new=5)
    assert beam_search(tiny, ids, settings) == beam_search(tiny, ids, settings)


def test_the_context_limit_cuts_all_beams():
    class Small(ToyEngine):
        @property
        def info(self):
            return type(super().info)(**{**vars(super().info), "context": 5})

    engine = Small(classic("wider_is_worse"))
    ids = engine.vocabulary.encode("one two three").ids
    found = beam_search(engine, ids, BeamSettings(width=2))
    assert (found.limit, found.stop) == (2, "context_limit")
    assert {h.end for h in found.hypotheses} == {"context_limit"}
    assert replay(found, found.settings).search == found


def test_a_bad_prompt_is_refused():
    with pytest.raises(Fault, match="empty"):
        beam_search(open_toy(), (), BeamSettings())


# --- the user


def test_the_user_stops_between_two_steps():
    table = classic("wider_is_worse")

    def stop(step):
        if step.index == 1:
            raise Stopped

    found = search(
        table_provider(table), BeamSettings(width=2), table.end_ids, prompt=(7,), on_step=stop
    )
    assert (found.stop, len(found.steps)) == ("user", 2)
    assert [(h.end, h.finished) for h in found.hypotheses] == [("user", False)] * 2
    assert [round(math.exp(h.logprob), 6) for h in found.hypotheses] == [0.2, 0.18]
    assert replay(found, found.settings).search == found


def test_the_user_stops_within_a_step_and_before_the_first():
    def never(_):
        raise Stopped

    found = search(never, BeamSettings(), ())
    assert (found.steps, found.hypotheses, found.stop) == ((), (), "user")
    assert found.tokens_evaluated == 0


def test_other_exceptions_pass_through():
    def cancel(_):
        raise KeyError("newer click")

    with pytest.raises(KeyError):
        search(random_provider(1, 3), BeamSettings(), (), on_step=cancel)


def test_a_run_is_driven_from_outside():
    table, settings = classic("early_stopping"), BeamSettings(width=2, max_new=5)
    run, read = BeamRun(settings, table.end_ids), []
    while run.wanted:
        assert run.result().stop is None
        read.append(len(run.wanted))
        run.advance(table_provider(table)(run.wanted))
    assert read == [1, 2, 2, 2]
    assert run.result() == search(table_provider(table), settings, table.end_ids)


# --- settings, and the texts that are too many


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"width": 0}, "beams is 0, but it must be from 1 to 256"),
        ({"width": MAX_BEAMS + 1}, "beams is 257, but"),
        ({"width": 2.5}, "beams must be a whole number"),
        ({"length_penalty": math.nan}, "length-penalty is nan, but it must be from -10 to 10"),
        ({"length_penalty": "long"}, "length-penalty must be a number"),
        ({"stop": "soon"}, "The stopping rule 'soon' is not known; choose one of: full, best"),
        ({"width": 2, "nbest": 3}, "nbest is 3, but it must be from 1 to 2"),
        ({"nbest": 0}, "nbest is 0, but"),
        ({"max_new": 0}, "max-new is 0, but"),
    ],
)
def test_bad_settings_are_refused_in_words(values, said):
    with pytest.raises(Fault) as caught:
        BeamSettings(**values)
    assert str(caught.value).startswith(said)


def test_trying_everything_has_an_end():
    with pytest.raises(Fault, match="more than 20,000 different texts"):
        exhaustive(random_provider(1, 4, zeros=0), BeamSettings(max_new=9), ())
    few = exhaustive(random_provider(1, 4, zeros=0), BeamSettings(max_new=3), ())
    assert (few.texts, few.forwards, len(few.hypotheses)) == (64, 21, 4)
