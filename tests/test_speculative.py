"""Speculative decoding: the law of the text is the large model's, exactly; greedy is greedy."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decode.choose import choose
from core.decode.draw import uniform
from core.decode.generate import generate
from core.decode.past import Past
from core.decode.rules import NO_RULES
from core.edits.apply import apply
from core.edits.spec import parse_edit
from core.engine.local import LocalEngine
from core.faults import Fault
from core.lab.speculative import (
    chance,
    expected_speed,
    expected_tokens,
    law,
    leftover,
    overlap,
)
from core.lab.speculative_readers import CachedReader
from core.lab.speculative_records import Drafted, PlainStep, Round, Speculation, draft_name
from core.lab.speculative_round import Text, round_of
from core.lab.speculative_run import same_tokenizer, speculated
from core.models.load import load
from core.models.tiny import tiny_of
from core.settings import Settings

GREEDY = Settings(strategy="greedy", max_new=40)


def last_of(turns):
    for found in turns:
        last = found
    return last


@pytest.fixture(scope="module")
def rounded():
    """tiny with its weights rounded to 4 bits: a draft that is often wrong."""
    return LocalEngine(load("tiny#bits:4:group:32", device="cpu"))


@pytest.fixture(scope="module")
def prompt(tiny):
    return tiny.vocabulary.read("the thing").ids


class Table:
    """A reader of a table: the scores depend on the tokens of the text so far."""

    def __init__(self, rows):
        self.rows, self.text, self.ms, self.asked = rows, [], 0.0, []

    @property
    def length(self):
        return len(self.text)

    def read(self, new):
        self.asked.append(len(new))
        out = []
        for token in new:
            self.text.append(token)
            out.append(self.rows[tuple(self.text)[1:]])
        return np.array(out)

    def back(self, count):
        del self.text[len(self.text) - count :]


def tables(seed, size, depth):
    """Random distributions after every text of up to ``depth`` tokens; some are impossible."""
    dice = np.random.default_rng(seed)
    rows = {}
    for length in range(depth + 1):
        for text in itertools.product(range(size), repeat=length):
            p = dice.dirichlet(np.full(size, 0.6))
            if dice.random() < 0.3:
                p[dice.integers(size)] = 0.0
                p /= p.sum()
            with np.errstate(divide="ignore"):
                rows[text] = np.log(p)
    return rows


# ---------------------------------------------------------------- the rule, by hand


def test_the_rule_by_hand():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    assert [chance(p, q, x) for x in range(3)] == pytest.approx([1, 1, 0.4])
    assert overlap(p, q) == pytest.approx(0.7)
    # Only token 0 has more in p than in q.
    assert leftover(p, q) == pytest.approx([1, 0, 0])
    assert leftover(p, p) == pytest.approx(p)


def test_the_expected_figures_by_hand():
    assert expected_tokens(0.5, 2) == pytest.approx(1 + 0.5 + 0.25)
    assert expected_tokens(0, 4) == 1
    assert expected_tokens(1, 4) == 5
    # Leviathan et al. 2023, theorem 3.8: (1 - a^(g+1)) / ((1 - a)(g c + 1)).
    assert expected_speed(0.8, 5, 0.05) == pytest.approx((1 - 0.8**6) / (0.2 * 1.25))


@given(st.integers(2, 6), st.integers(0, 10**6))
def test_proposed_and_kept_or_replaced_gives_p(size, seed):
    dice = np.random.default_rng(seed)
    p, q = dice.dirichlet(np.full(size, 0.5), 2)
    kept = np.array([q[x] * chance(p, q, x) for x in range(size)])
    whole = kept + (1 - kept.sum()) * leftover(p, q)
    assert np.abs(whole - p).max() < 1e-12
    assert kept.sum() == pytest.approx(overlap(p, q), abs=1e-12)


def test_every_text_of_two_tokens_is_as_likely_as_without_a_draft():
    """Two proposals, judged in one pass; all draws and verdicts are summed over."""
    size = 3
    target, draft = tables(1, size, 2), tables(2, size, 2)
    p, q = ({text: np.exp(row) for text, row in rows.items()} for rows in (target, draft))
    found = {}

    def add(text, probability):
        found[text] = found.get(text, 0.0) + probability

    for x, y in itertools.product(range(size), repeat=2):
        proposed = q[()][x] * q[x,][y]
        if proposed == 0:
            continue
        first = chance(p[()], q[()], x)
        second = chance(p[x,], q[x,], y)
        add((x, y), proposed * first * second)
        for z in range(size):
            add((x, z), proposed * first * (1 - second) * leftover(p[x,], q[x,])[z])
            # After a replacement the round is over, and the next one begins there.
            replaced = proposed * (1 - first) * leftover(p[()], q[()])[z]
            for w in range(size):
                add((z, w), replaced * p[z,][w])
    for x, y in itertools.product(range(size), repeat=2):
        assert found.get((x, y), 0.0) == pytest.approx(p[()][x] * p[x,][y], abs=1e-12)


def test_many_rounds_follow_the_target_law():
    """χ² over the first three tokens of 4,000 texts, with dice as the program throws them."""
    size, depth, count = 3, 3, 4000
    target, draft = tables(5, size, depth + 3), tables(6, size, depth + 3)
    seen = {}
    for seed in range(count):
        text = Text([9], 1, Settings(seed=seed), NO_RULES)
        readers = Table(draft), Table(target)
        while text.step < depth:
            round_of(text, *readers, min(2, depth - text.step))
        key = tuple(text.ids[1 : 1 + depth])
        seen[key] = seen.get(key, 0) + 1
    expected = {
        key: count * math.exp(sum(target[key[:i]][key[i]] for i in range(depth)))
        for key in itertools.product(range(size), repeat=depth)
    }
    assert all(expected[key] > 0 for key in seen)
    cells = [(seen.get(key, 0), value) for key, value in expected.items() if value >= 5]
    chi = sum((o - e) ** 2 / e for o, e in cells)
    freedom = len(cells)
    # Wilson and Hilferty: about normal; 4 standard deviations are 1 in 30,000.
    normal = ((chi / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    assert abs(normal) < 4


def test_one_pass_checks_all_proposals():
    size = 3
    readers = Table(tables(6, size, 7)), Table(tables(5, size, 7))
    text = Text([9], 1, Settings(seed=3), NO_RULES)
    made = round_of(text, *readers, 3)
    draft, model = readers
    assert model.asked == [1 + 3]
    assert draft.asked == [1, 1, 1]
    # Both stand behind the last kept token; what came after it was never read.
    assert model.text == text.ids[:-1]
    assert len(made.ids) == made.accepted + 1
    assert made.positions == 4


# ---------------------------------------------------------------- the settings


@pytest.mark.parametrize(
    "settings",
    [
        Settings(temperature=0.7),
        Settings(top_k=5),
        Settings(top_p=0.8, temperature=1.3),
        Settings(min_p=0.1, repetition_penalty=1.3),
        Settings(typical_p=0.6),
        GREEDY,
        Settings(temperature=0),
    ],
)
def test_the_law_is_the_one_that_plain_decoding_draws_from(tiny, prompt, settings):
    logits = tiny.forward(prompt).logits
    found = law(logits, settings, Past(prompt, len(prompt)), NO_RULES)
    assert found.p.sum() == pytest.approx(1, abs=1e-12)
    for seed in range(30):
        choice = choose(
            logits,
            Settings(**{**_given(settings), "seed": seed}),
            step=0,
            past=Past(prompt, len(prompt)),
        )
        token = found.draw(uniform(seed, 0))
        assert token == choice.id
        expected = 1.0 if settings.is_greedy else choice.probability_filtered
        assert found.p[token] == pytest.approx(expected, abs=1e-12)


def _given(settings):
    names = ("strategy", "temperature", "top_k", "top_p", "min_p", "typical_p")
    return {n: getattr(settings, n) for n in (*names, "repetition_penalty")}


# ---------------------------------------------------------------- real models


@pytest.mark.parametrize("gamma", [1, 2, 4, 7])
def test_greedy_is_the_greedy_text(tiny, rounded, prompt, gamma):
    run = last_of(speculated(tiny, rounded, prompt, GREEDY, gamma))
    engine = [step.choice.id for step in generate(tiny, prompt, GREEDY)]
    assert list(run.ids) == list(run.plain_ids) == engine
    assert run.same_text
    assert 0 < run.acceptance < 1
    judged = [token for r in run.rounds for token in r.drafted if token.kept is not None]
    assert [token.p for token in judged] == [float(token.kept) for token in judged]
    assert sum(len(r.ids) for r in run.rounds) == 40


def test_it_is_transformers_own(tiny, rounded, prompt):
    import torch

    run = last_of(speculated(tiny, rounded, prompt, GREEDY, 4))
    with tiny.borrowed() as model, rounded.borrowed() as draft:
        ids = torch.tensor([prompt])
        made = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            assistant_model=draft,
            do_sample=False,
            max_new_tokens=40,
        )
    assert made[0, len(prompt) :].tolist() == list(run.ids)


def test_a_draft_that_is_the_model_writes_the_same_text_with_the_same_dice(tiny, prompt):
    settings = Settings(temperature=0.9, top_k=40, seed=3, max_new=30)
    run = last_of(speculated(tiny, tiny, prompt, settings, 4))
    engine = [step.choice.id for step in generate(tiny, prompt, settings)]
    assert list(run.ids) == list(run.plain_ids) == engine
    assert run.acceptance == 1
    assert run.mean_overlap == pytest.approx(1, abs=1e-5)
    assert run.tokens_per_pass == run.expected == 5


def test_a_sliding_window_is_read_on_exactly():
    """Three layers with windows of 8 positions; proposals are taken back beyond them."""
    model = LocalEngine(tiny_of("gemma3"))
    draft = LocalEngine(apply(tiny_of("gemma3"), parse_edit("bits:5"), name="x"))
    prompt = model.vocabulary.read("the thing is that").ids
    run = last_of(speculated(model, draft, prompt, GREEDY, 4))
    assert 0 < run.acceptance < 1
    assert list(run.ids) == [step.choice.id for step in generate(model, prompt, GREEDY)]
    reader = CachedReader(model)
    ids = [*prompt, *run.ids]
    reader.read(ids)
    reader.back(5)
    again = reader.read(ids[-5:])
    whole = CachedReader(model).read(ids)
    assert np.abs(again - whole[-5:]).max() < 1e-4


def test_the_rounds_add_up(tiny, rounded, prompt):
    run = last_of(speculated(tiny, rounded, prompt, Settings(temperature=0.8, max_new=30), 3))
    start = 0
    for made in run.rounds:
        assert made.start == start
        start += len(made.ids)
        judged = [token for token in made.drafted if token.kept is not None]
        for token in judged:
            assert token.kept == (token.u < min(1, token.p / token.q))
        # Nothing is judged behind a rejection.
        assert [token.kept for token in judged[:-1]] == [True] * (len(judged) - 1)
        assert made.ending == ("bonus" if made.accepted == len(made.drafted) else "replaced")
    assert start == 30
    assert run.judged >= run.accepted
    assert run.speed == pytest.approx(run.plain_ms_a_token / run.ms_a_token)
    whole = sum(made.ms for made in run.rounds)
    assert run.ms_a_token == pytest.approx(whole / 30)


def test_the_figures_of_a_run_by_hand():
    """Of three proposals one is kept, one rejected, one never judged; then all three are kept;
    then the text ends after a single proposal."""

    def proposed(*kept):
        return tuple(Drafted(7, 0.5, None, verdict, None, 0.25) for verdict in kept)

    def made(drafted, ending, choose_ms):
        return Round(0, drafted, ending, 8, 1.0, (2.0,) * len(drafted), 8.0, choose_ms, 4)

    rounds = (
        made(proposed(True, False, None), "replaced", 1.0),
        made(proposed(True, True, True), "bonus", 3.0),
        made(proposed(True), "bonus", 0.0),
    )
    info = LocalEngine(tiny_of("llama")).info
    found = replace(
        Speculation.begun(info, "draft", (1,), 3, GREEDY),
        rounds=rounds,
        plain=(PlainStep(7, 4.0, 1.0),),
    )
    assert (found.proposed, found.judged, found.accepted) == (7, 6, 5)
    assert found.acceptance == pytest.approx(5 / 6)
    assert found.mean_overlap == 0.25
    # Two full rounds of 2 and of 4 tokens; the third could not be full.
    assert found.tokens_per_pass == 3
    assert found.expected == expected_tokens(5 / 6, 3)
    # 15, 17 and 10 ms for 2 + 4 + 2 tokens.
    assert found.ms_a_token == 42 / 8
    assert found.speed == pytest.approx(5 / (42 / 8))
    # A draft's pass takes half of a plain one, the checking pass two.
    assert found.expected_speed == pytest.approx(expected_tokens(5 / 6, 3) / (3 * 0.5 + 2))


def test_the_probability_of_the_last_token_is_that_of_what_it_was_drawn_from():
    size, seen = 3, set()
    target, draft = tables(5, size, 4), tables(6, size, 4)
    for seed in range(40):
        text = Text([9], 1, Settings(seed=seed), NO_RULES)
        made = round_of(text, Table(draft), Table(target), 2)
        before = tuple(token.id for token in made.drafted[: made.accepted])
        p, q = np.exp(target[before]), np.exp(draft[before])
        drawn_from = leftover(p, q) if made.ending == "replaced" else p
        assert made.extra_p == pytest.approx(drawn_from[made.extra])
        seen.add(made.ending)
    assert seen == {"replaced", "bonus"}


def test_bytes_are_those_of_either_model(tiny, prompt):
    draft = LocalEngine(load("tiny#int8", device="cpu"))
    *_, run = speculated(tiny, draft, prompt, Settings(max_new=1), 1)
    assert run.model_bytes == tiny.info.bytes_in_memory
    assert run.draft_bytes == draft.info.bytes_in_memory < run.model_bytes


def test_an_end_token_ends_it(tiny, rounded, prompt):
    """With one token left possible, both ways stop at once."""
    settings = Settings(strategy="greedy", max_new=40, pattern="ab")
    run = last_of(speculated(tiny, rounded, prompt, settings, 4))
    assert tiny.vocabulary.text(run.ids) == tiny.vocabulary.text(run.plain_ids)
    assert tiny.vocabulary.text([i for i in run.ids if i not in tiny.info.end_ids]) == "ab"
    assert run.done


def test_what_cannot_be_done_is_a_sentence(tiny, rounded, prompt):
    for settings, gamma, code in (
        (GREEDY, 0, "setting_out_of_range"),
        (GREEDY, 17, "setting_out_of_range"),
        (Settings(max_new=1000), 4, "setting_out_of_range"),
    ):
        with pytest.raises(Fault) as fault:
            last_of(speculated(tiny, rounded, prompt, settings, gamma))
        assert fault.value.code == code
    with pytest.raises(Fault) as fault:
        last_of(speculated(tiny, rounded, (), GREEDY, 4))
    assert fault.value.code == "empty_prompt"


def test_tokenizers_are_compared(tiny, rounded):
    assert same_tokenizer(tiny.vocabulary, rounded.vocabulary)


def test_a_draft_is_named():
    assert draft_name("smollm2-135m#zeros:0.1", "#int8") == "smollm2-135m#int8"
    assert draft_name("tiny", "smollm2-135m") == "smollm2-135m"


@pytest.mark.model
def test_greedy_on_the_default_model(smollm2):
    draft = LocalEngine(load("smollm2-135m#bits:4:group:64"), memo_bytes=1, kv_bytes=1)
    prompt = smollm2.vocabulary.read("The capital of France is").ids
    settings = Settings(strategy="greedy", max_new=12)
    run = last_of(speculated(smollm2, draft, prompt, settings, 3))
    assert list(run.ids) == [step.choice.id for step in generate(smollm2, prompt, settings)]
    assert smollm2.vocabulary.text(run.ids).startswith(" Paris")
    assert run.mean_overlap == pytest.approx(run.acceptance)


@pytest.mark.model
def test_the_packaged_pair_has_two_tokenizers(smollm2, gemma3):
    with pytest.raises(Fault) as fault:
        last_of(speculated(smollm2, gemma3, (1, 2), GREEDY, 3))
    assert fault.value.code == "speculative_tokenizers"
