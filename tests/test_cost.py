"""What a run costs is computed from shapes, and equals what the records then hold."""

import pytest

from core.decode.generate import run
from core.engine import cost as costs
from core.faults import Fault
from core.settings import RunSpec, Settings


def test_kv_bytes_of_the_default_model(smollm2_info):
    assert costs.kv_bytes_per_token(smollm2_info) == 46_080


def test_the_estimate_is_what_the_records_hold(tiny):
    spec = RunSpec(prompt="hello there", settings=Settings(strategy="greedy", max_new=5))
    made = run(tiny, spec)
    prompt, new = len(made.prompt), len(made.steps)
    found = costs.cost(tiny.info, prompt, new)
    assert found.attention_kept
    assert found.attention == sum(s.forward.attention.nbytes for s in made.steps)
    rows = sum(s.forward.residual.nbytes + s.forward.embedding.nbytes for s in made.steps)
    # The last token is chosen but not read, so its row is estimated and never made.
    assert 0 <= found.residual - rows <= 4 * (tiny.info.layers + 1) * tiny.info.width
    assert found.logits == sum(s.forward.logits.nbytes for s in made.steps)
    assert found.total == found.attention + found.residual + found.logits + found.kv_cache


def test_maps_that_are_too_large_are_left_out(tiny, monkeypatch):
    limit = 4 * tiny.info.layers * tiny.info.heads * 10**2
    monkeypatch.setenv("TOKEN_BY_TOKEN_ATTENTION_MB", str(limit / 1e6))
    assert tiny.forward(range(10)).attention is not None
    long = tiny.forward(range(11))
    assert long.attention is None
    assert long.residual.shape[1] == 11
    assert not costs.cost(tiny.info, 11, 1).attention_kept


@pytest.mark.parametrize(("tokens", "code"), [(0, "empty_prompt"), (10**6, "prompt_too_long")])
def test_a_prompt_that_does_not_fit_gets_a_sentence(tiny, tokens, code):
    with pytest.raises(Fault) as caught:
        costs.check_prompt(tiny.info, tokens)
    assert caught.value.code == code
    if tokens:
        assert str(costs.prompt_limit(tiny.info)) in str(caught.value)


@pytest.mark.parametrize("value", ["abc", "0", "-3", "nan", "inf", "1e12"])
def test_a_limit_that_is_no_number_gets_a_sentence(tiny, monkeypatch, value):
    monkeypatch.setenv("TOKEN_BY_TOKEN_MAX_PROMPT", value)
    with pytest.raises(Fault) as caught:
        costs.prompt_limit(tiny.info)
    assert caught.value.code == "bad_limit"
    assert "TOKEN_BY_TOKEN_MAX_PROMPT" in str(caught.value)


def test_a_long_run_keeps_no_maps_rather_than_crowding_the_memory(smollm2_info):
    """The maps of later steps count too: 500 steps after 300 tokens would fill 394 MB."""
    assert costs.cost(smollm2_info, 300, 24).attention_kept
    long = costs.cost(smollm2_info, 300, 500)
    assert not long.attention_kept
    assert long.attention == 0
    assert long.total < 300_000_000


@pytest.fixture
def smollm2_info():
    from core.recorded import recorded_engine

    return recorded_engine().info
