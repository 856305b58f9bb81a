"""A beam search as data: orientation, losers and winners, greedy's way, on tables by hand."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from core.decode import exhaustive, replay, search
from core.engine.toy import ToyEngine, parse_table
from core.engine.toy_classics import CLASSICS, classic
from core.faults import Fault
from core.settings import BeamSettings
from tests.beams import random_provider, table_provider
from ui.beam_table import LESSONS, content_of, limit_of, outcomes, packed, pretty, table_of
from ui.figures.beam import beam_data, greedy_in, shown_fate
from ui.figures.beam_words import (
    candidates_table,
    cost_table,
    costs,
    lesson_sentence,
    true_best,
    verdict_sentence,
)
from ui.i18n import catalog

LANGS = ["en", "zh"]


def found(name, width, **rules):
    table = classic(name)
    settings = BeamSettings(width=width, max_new=limit_of(name), **rules)
    return search(table_provider(table), settings, table.end_ids, prompt=(0,))


def data_of(name, width, *, lang="en", node=None, after=None, **rules):
    made = found(name, width, **rules)
    vocabulary = ToyEngine(classic(name)).vocabulary
    way = greedy_in(made, found(name, 1))
    return beam_data(
        made, way, vocabulary, catalog(lang), node=node, after=after, can_continue=False
    )


def words(data, row):
    """The labels on the way to a row of the ranking, by following the parents sent."""
    step, place = row["node"]
    labels = []
    while step >= 0:
        candidate = data["steps"][step]["candidates"][place]
        labels.append(data["labels"][candidate["label"]])
        step, place = step - 1, candidate["parent"]
    return labels[::-1]


# --- the tree


def test_columns_are_steps_and_parents_point_one_step_back():
    data = data_of("beam_beats_greedy", 2)
    shown = [
        [(data["labels"][c["label"]], c["parent"], c["fate"]) for c in step["candidates"]]
        for step in data["steps"]
    ]
    assert shown == [
        [("red", -1, "live"), ("blue", -1, "live")],
        [
            ("sky", 1, "live"),
            ("rose", 0, "live"),
            ("sky", 0, "lost"),
            ("<end>", 0, "lost"),
        ],
        [("<end>", 0, "finished"), ("<end>", 1, "finished")],
    ]
    best, second = data["ranking"]
    assert words(data, best) == ["blue", "sky", "<end>"]
    assert words(data, second) == ["red", "rose", "<end>"]
    assert best["sum"] == pytest.approx(math.log(0.45 * 0.9))
    assert [row["rank"] for row in data["ranking"]] == [1, 2]
    sky = data["steps"][1]["candidates"][0]
    assert sky["p"] == pytest.approx(0.9)
    assert sky["sum"] == pytest.approx(math.log(0.405))


def test_a_loser_names_the_winner_and_by_how_much():
    data = data_of("beam_beats_greedy", 2)
    lost = data["steps"][1]["candidates"][2]["loss"]
    assert (lost["reason"], lost["to"]) == ("outside_beam", [1, 1])
    assert lost["by"] == pytest.approx(math.log(0.55 * 0.4) - math.log(0.55 * 0.32))
    ended = data["steps"][1]["candidates"][3]["loss"]
    assert (ended["reason"], ended["to"]) == ("end_outside_beam", [1, 1])
    assert ended["by"] == pytest.approx(math.log(0.4 / 0.28))


def test_with_a_penalty_the_difference_is_one_of_scores():
    plain, ranked = (
        data_of("beam_beats_greedy", 2),
        data_of("beam_beats_greedy", 2, length_penalty=1),
    )
    by = [d["steps"][1]["candidates"][2]["loss"]["by"] for d in (plain, ranked)]
    assert by[1] == pytest.approx(by[0] / 2)


def test_what_the_limit_cut_off_is_told_apart():
    data = data_of("wider_is_worse", 2)
    fates = [c["fate"] for c in data["steps"][-1]["candidates"]]
    assert fates == ["cut", "cut", "lost", "lost"]
    assert {row["end"] for row in data["ranking"]} == {"output_limit"}


def test_a_text_that_was_pushed_out_later_says_so():
    data = data_of("early_stopping", 2, stop="best")
    labels = {tuple(d["node"]): d for d in data["displaced"]}
    assert list(labels) == [(2, 1)]
    gone = labels[2, 1]
    assert gone["step"] == 3
    assert gone["by"] == pytest.approx(math.log(0.24) - math.log(0.168))
    assert words(data, {"node": gone["to"]}) == ["we", "<end>"]
    assert [words(data, row) for row in data["ranking"]] == [
        ["we", "walk", "home", "<end>"],
        ["we", "<end>"],
    ]


def test_nbest_marks_what_is_kept_beyond_it():
    data = data_of("beam_beats_greedy", 2, nbest=1)
    assert [row["extra"] for row in data["ranking"]] == [False, True]
    assert data["wanted"] == 1


# --- greedy's way


@pytest.mark.parametrize(
    ("name", "width", "leaves", "length"),
    [
        ("beam_beats_greedy", 2, "whole", 3),
        ("wider_is_worse", 2, "lost", 2),
        ("wider_is_worse", 3, "whole", 3),
    ],
)
def test_greedys_way_goes_as_far_as_the_search_kept_it(name, width, leaves, length):
    made, alone = found(name, width), found(name, 1)
    way = greedy_in(made, alone)
    assert (way.leaves, len(way.path)) == (leaves, length)
    tokens = alone.hypotheses[0].tokens
    for index, node in enumerate(way.path):
        assert made.tokens_at(node) == tokens[: index + 1]
    if leaves == "lost":
        assert shown_fate(made.steps[way.path[-1][0]], way.path[-1][1]) == "lost"


def test_a_search_that_stopped_before_greedys_end():
    made = found("early_stopping", 2, stop="full")
    way = greedy_in(made, found("early_stopping", 1))
    assert (way.leaves, len(way.path)) == ("ended", 3)


def test_greedys_way_in_a_random_search_is_greedys_text():
    for seed in range(20):
        provider = random_provider(seed, 5)
        wide = search(provider, BeamSettings(width=3, max_new=5), (4,))
        alone = search(provider, BeamSettings(width=1, max_new=5), (4,))
        way = greedy_in(wide, alone)
        tokens = alone.hypotheses[0].tokens
        assert [wide.tokens_at(n) for n in way.path] == [
            tokens[: i + 1] for i in range(len(way.path))
        ]
        assert (way.leaves == "whole") == (len(way.path) == len(tokens) and way.leaves != "lost")


# --- the card of a node


def test_what_comes_next_says_what_became_of_each():
    table = classic("beam_beats_greedy")
    data = data_of("beam_beats_greedy", 2, node=(0, 1), after=table.row((1,)))
    rows = data["next"]["rows"]
    named = [(data["labels"][r["label"]], round(r["p"], 6), r["place"], r["fate"]) for r in rows]
    assert named == [
        ("sky", 0.9, 0, "live"),
        ("rose", 0.06, None, None),
        ("<end>", 0.04, None, None),
    ]
    assert data["next"]["others"] == 0
    assert data["text"] == "blue"


def test_tokens_that_were_not_looked_at_have_no_fate():
    logits = np.log(np.full(30, 1 / 30))
    provider = lambda prefixes: [logits for _ in prefixes]  # noqa: E731
    made = search(provider, BeamSettings(width=1, max_new=2), ())
    vocabulary = ToyEngine(
        parse_table({"vocab": [f"w{i}" for i in range(30)], "next": {"*": [1 / 30] * 30}})
    ).vocabulary
    data = beam_data(
        made, None, vocabulary, catalog("en"), node=(0, 0), after=logits, can_continue=True
    )
    assert [row["fate"] for row in data["next"]["rows"]] == ["cut", "lost"] + [None] * 8
    assert data["next"]["others"] == 20
    assert data["next"]["rest"] == pytest.approx(20 / 30)
    assert data["greedy"] is None


def test_everything_sent_is_json_and_carries_no_infinity():
    for name in CLASSICS:
        json.dumps(data_of(name, 3, lang="zh"), allow_nan=False)


# --- tables and sentences


def test_what_it_cost_beside_greedy_and_beside_everything():
    made, alone = found("wider_is_worse", 2), found("wider_is_worse", 1)
    table, t = classic("wider_is_worse"), catalog("en")
    vocabulary = ToyEngine(table).vocabulary
    every = exhaustive(table_provider(table), BeamSettings(width=1, max_new=3), table.end_ids)
    rows = costs(made, alone, (every, 1.0), t)
    assert [(r.forwards, r.tokens) for r in rows] == [(5, 5), (3, 3), (31, 31)]
    assert every.texts == 125
    frame = cost_table(rows, vocabulary, t)
    assert list(frame["best text"]) == ["no but yes", "yes and so", "yes and so"]
    assert frame["time"][2] == "1 ms"
    missed = true_best(made, every, vocabulary, t)
    assert missed is not None
    assert "yes and so" in missed
    assert "125" in missed
    assert true_best(alone, every, vocabulary, t) == t("beam_search.true_best_found", n="125")


@pytest.mark.parametrize("lang", LANGS)
def test_the_time_of_a_search_says_how_much_of_it_was_computed(lang):
    t, made = catalog(lang), found("wider_is_worse", 2)
    vocabulary = ToyEngine(classic("wider_is_worse")).vocabulary

    def time_of(*each: float) -> str:
        steps = tuple(replace(s, ms=ms) for s, ms in zip(made.steps, each, strict=True))
        rows = costs(replace(made, steps=steps), None, None, t)
        return cost_table(rows, vocabulary, t)[t("beam_search.cost_ms")][0]

    assert time_of(7000, 900, 42.7) == "7.9 s"
    assert time_of(100, 4.4, 4.4) == "109 ms"
    some = t("beam_search.cost_some", time="20 ms", timed=2, passes=3)
    assert time_of(0, 12, 8) == some
    assert time_of(0, 0, 0) == t("beam_search.cost_remembered")


@pytest.mark.parametrize("lang", LANGS)
def test_each_classics_lesson_is_said_with_its_own_numbers(lang):
    t = catalog(lang)
    said = {
        name: lesson_sentence(name, outcomes(name), ToyEngine(classic(name)).vocabulary, t)
        for name in CLASSICS
    }
    for name, parts in {
        "beam_beats_greedy": ("red rose", "0.22", "blue sky", "0.405", "1.8"),
        "wider_is_worse": ("yes and so", "0.144", "no but yes", "0.048"),
        "length_penalty": ("rain", "0.36", "rain falls softly today", "0.3024"),
        "early_stopping": ("we walk home", "0.24", "0.3192"),
    }.items():
        for part in parts:
            assert part in said[name], (name, part)


def test_lessons_start_where_the_difference_shows():
    for name, lesson in LESSONS.items():
        texts = [made.hypotheses[0].tokens for made in outcomes(name)]
        assert len(set(texts)) == 2
        assert lesson.start[lesson.field] in lesson.values


def test_the_verdict_names_the_steps():
    made = found("early_stopping", 2, stop="best")
    again = replay(made, BeamSettings(width=2, stop="full", max_new=5))
    assert again.verdict == "earlier"
    said = verdict_sentence("earlier", again.search, made, catalog("en"))
    assert f"after {len(again.search.steps)} steps instead of {len(made.steps)}" in said


def test_every_candidate_stands_in_the_table():
    made = found("beam_beats_greedy", 2)
    frame = candidates_table(
        made, ToyEngine(classic("beam_beats_greedy")).vocabulary, catalog("en")
    )
    assert len(frame) == sum(len(step.candidates) for step in made.steps)
    assert list(frame["fate"]).count("lost") == 2
    row = frame[(frame["step"] == 2) & (frame["place"] == 3)].iloc[0]
    assert (row["after"], row["token"], row["to"]) == ("red", "sky", "red rose")


# --- tables of the reader


def test_a_table_survives_the_link_and_the_editor():
    for name in CLASSICS:
        short = packed(pretty(name))
        assert len(short) < 500
        table, again = table_of(name), table_of(short)
        assert again.vocab == table.vocab
        assert again.end_ids == table.end_ids
        assert {h: row.tolist() for h, row in again.logits.items()} == {
            h: row.tolist() for h, row in table.logits.items()
        }
        assert packed(pretty(short)) == short
        assert json.loads(pretty(name)).keys() == {"vocab", "end", "next"}
        assert content_of(name)["about"] not in short


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "table_not_json"),
        ("{", "table_not_json"),
        ("[" * 100_000, "table_not_json"),
        ("[1, 2]", "toy_parts"),
        ('{"vocab": ["a"], "next": {"": [0.5]}}', "toy_row_sum"),
        ('{"vocab": ["a", "a"], "next": {"": [1]}}', "toy_vocab"),
        ('{"vocab": ["\\ud800"], "next": {"": [1]}}', "toy_vocab"),
        ('{"vocab": ["a"], "next": {"b": [1]}}', "toy_history"),
        ('{"vocab": ["a"], "next": {"": [1, 0]}}', "toy_row_length"),
        ('{"vocab": ["a"], "end": ["z"], "next": {"": [1]}}', "toy_end"),
        ("beam_beats", "table_not_json"),
    ],
)
def test_a_table_that_is_none_gets_a_sentence(text, code):
    with pytest.raises(Fault) as caught:
        table_of(text)
    assert caught.value.code == code
    assert packed(text) == text.strip()
    assert pretty(text) == text


# --- other kinds of search


def test_a_diverse_candidate_loses_by_what_its_group_ranks_by():
    table = classic("wider_is_worse")
    settings = BeamSettings(width=4, max_new=3, kind="diverse", groups=2, diversity=0.5)
    made = search(table_provider(table), settings, table.end_ids)
    data = beam_data(
        made, None, ToyEngine(table).vocabulary, catalog("en"),
        node=None, after=None, can_continue=True,
    )  # fmt: skip
    assert (data["kind"], data["places"]) == ("diverse", 2)
    seen = 0
    for index, step in enumerate(made.steps):
        for place, candidate in enumerate(step.candidates):
            sent = data["steps"][index]["candidates"][place]
            assert (sent["group"], sent["ranked"]) == (candidate.group, candidate.ranked)
            if sent["loss"] and sent["loss"]["reason"] != "worse_hypothesis":
                winner = step.candidates[sent["loss"]["to"][1]]
                assert winner.group == candidate.group
                assert sent["loss"]["by"] == pytest.approx(winner.ranked - candidate.ranked)
                assert sent["loss"]["by"] >= 0
                seen += 1
    assert seen
    frame = candidates_table(made, ToyEngine(table).vocabulary, catalog("en"))
    assert set(frame["group"]) == {1, 2}


def test_a_sampled_search_tells_the_perturbed_scores():
    table = classic("beam_beats_greedy")
    settings = BeamSettings(width=2, max_new=3, kind="sampled", seed=5)
    made = search(table_provider(table), settings, table.end_ids)
    data = beam_data(
        made, None, ToyEngine(table).vocabulary, catalog("zh"),
        node=None, after=None, can_continue=True,
    )  # fmt: skip
    lost = [c for step in data["steps"] for c in step["candidates"] if c["fate"] == "lost"]
    assert lost
    for candidate in lost:
        assert candidate["loss"]["by"] >= 0
    json.dumps(data, allow_nan=False)
