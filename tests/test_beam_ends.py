"""End tokens that the reader names: what is understood, what is refused, and transformers."""

import json

import pytest
import torch

from core.compare_records import Question
from core.decode import beam_search, compare, parse_column, replay, spell
from core.decode.beam_rules import Option, needed
from core.decode.ends import end_ids
from core.engine.toy import ToyEngine
from core.engine.toy_classics import classic_path
from core.engine.toy_table import parse_table
from core.faults import Fault
from core.settings import BeamSettings
from tests.beams import theirs
from tests.test_beam_transformers import agree


def ends_of(engine, *entries):
    return end_ids(BeamSettings(ends=entries), engine)


def test_the_model_s_own_unless_others_are_named(tiny):
    own = tiny.info.end_ids
    assert own
    assert ends_of(tiny) == own
    assert ends_of(tiny, "#13") == (*own, 13)
    assert ends_of(tiny, "#13", "#5", "#13", "#none") == (13, 5)
    assert ends_of(tiny, "#none") == ()


def test_a_text_is_the_token_that_writes_it(tiny):
    words = tiny.vocabulary
    spelled = words.spellings()
    for text, entry in ((".", "."), ("\n", "\\n"), (" the", " the"), ("\\", "\\\\"), ("#", "\\#")):
        ids = ends_of(tiny, "#none", entry)
        assert ids == tuple(i for i, data in enumerate(spelled) if data == text.encode())
        assert ids
    control = words.label(tiny.info.end_ids[0])
    assert ends_of(tiny, "#none", control) == tiny.info.end_ids[:1]


@pytest.mark.parametrize(
    ("entry", "code", "said"),
    [
        ("...zebra", "end_several_tokens", "“...zebra” is "),
        ("the end", "end_several_tokens", "␣"),
        ("#999999", "unknown_token", "Token id 999999 does not exist"),
        ("\\#13", "end_several_tokens", "“#13” is 3 tokens here (# · 1 · 3)"),
    ],
)
def test_what_is_no_single_token_gets_a_sentence(tiny, entry, code, said):
    with pytest.raises(Fault) as caught:
        ends_of(tiny, entry)
    assert caught.value.code == code
    assert said in str(caught.value)


def test_words_of_a_table():
    content = json.loads(classic_path("beam_beats_greedy").read_text(encoding="utf-8"))
    toy = ToyEngine(parse_table(content), name="toy")
    own = toy.info.end_ids
    assert ends_of(toy, "red") == (*own, toy.vocabulary.encode("red").ids[0])
    assert ends_of(toy, "<end>") == own
    with pytest.raises(Fault) as caught:
        ends_of(toy, "green")
    assert caught.value.code == "end_unknown"
    with pytest.raises(Fault) as caught:
        ends_of(toy, "red sky")
    assert str(caught.value).startswith("“red␣sky” is 2 tokens here (red · sky)")


@pytest.mark.parametrize("ends", [("",), ("x" * 101,), tuple(f"#{i}" for i in range(33))])
def test_a_list_that_is_too_long_or_empty_is_refused(ends):
    with pytest.raises(Fault) as caught:
        BeamSettings(ends=ends)
    assert caught.value.code == "bad_ends"


def test_generate_with_the_same_eos_token_ids(tiny, tiny_model):
    """transformers' ``generate(num_beams=…, eos_token_id=[…])``."""
    ids = tiny.vocabulary.encode("the 国 é").ids
    # What the search itself comes upon ends something.
    plain = beam_search(tiny, ids, BeamSettings(width=8, max_new=4))
    liked = [c.token for step in plain.steps for c in step.candidates[2::3]]
    named = tuple(f"#{i}" for i in dict.fromkeys(liked))[:31]
    lists = ((*named, "#none"), named, (named[0], "#none"), (".", "\\n"))
    stops = set()
    for number, ends in enumerate(lists):
        for width, penalty in ((1, 0.0), (2, -1.0), (3, 0.0), (5, 1.0), (8, 2.0)):
            stop = ("full", "best")[(number + width) % 2]
            settings = BeamSettings(
                width=width, length_penalty=penalty, stop=stop, max_new=7, ends=ends
            )
            found = beam_search(tiny, ids, settings)
            expected = ends_of(tiny, *ends)
            assert found.end_ids == expected
            stops.add(found.stop)
            if width == 1:
                out = tiny_model.generate(
                    torch.tensor([list(ids)]), do_sample=False, max_new_tokens=7,
                    eos_token_id=list(expected), pad_token_id=0,
                )  # fmt: skip
                assert list(found.hypotheses[0].tokens) == out[0, len(ids) :].tolist()
                continue
            agree(found, theirs(tiny_model, ids, settings, expected), 2e-5)
    assert stops >= {"full", "no_beam_can_win", "output_limit"}


def test_many_end_tokens_keep_no_candidate_that_decides_nothing(tiny):
    looked = [Option(0, token, -token, -token) for token in range(30)]
    ends = tuple(range(3, 30, 2))
    assert [o.token for o in needed(looked, 2, ends)] == list(range(8))  # 0 and 1 go on
    # 3 and 9 go on.
    assert [o.token for o in needed(looked, 2, (0, 1, 2, 4, 5, 6, 7, 8))] == list(range(10))
    assert needed(looked, 4, tuple(range(30))) == looked
    ids = tiny.vocabulary.encode("the").ids
    found = beam_search(tiny, ids, BeamSettings(ends=tuple(f"#{i}" for i in range(200, 232))))
    assert all(16 <= len(step.candidates) <= 4 + 32 for step in found.steps)
    assert len(found.steps[3].candidates) < 20


def test_judged_again_only_with_the_same_end_tokens(tiny):
    ids = tiny.vocabulary.encode("the").ids
    found = beam_search(tiny, ids, BeamSettings(ends=("#none",), max_new=3))
    with pytest.raises(ValueError, match="another search"):
        replay(found, BeamSettings(max_new=3))
    again = replay(found, BeamSettings(ends=("#none",), max_new=3, length_penalty=1.0))
    assert again.search.end_ids == ()


def test_a_column_names_them(tiny):
    line = "beam,beams=3,end=.,end=%2C,end=\\n,end=#13,end=%20the"
    column = parse_column(line)
    assert column.settings.ends == (".", ",", "\\n", "#13", " the")
    assert spell(column) == line
    question = Question("the", "tiny", (column, parse_column("beam,end=no such token")), max_new=4)
    found = list(compare({"tiny": tiny}, question))[-1]
    good, bad = found.columns
    assert good.search.end_ids == ends_of(tiny, *column.settings.ends)
    assert bad.fault.code == "end_several_tokens"


def test_the_command_line(as_json, cli):
    argv = ["run", "the", "--model", "tiny", "--strategy", "beam", "--max-new", "5"]
    plain = as_json(*argv)
    assert "end_ids" not in plain
    first = plain["hypotheses"][0]["tokens"][0]
    found = as_json(*argv, "--end", f"#{first}", "--end", ".", "--end", "#none")
    assert found["settings"]["ends"] == [f"#{first}", ".", "#none"]
    assert found["end_ids"][0] == first
    ended = [h for h in found["hypotheses"] if h["tokens"] == [first]]
    assert [(h["finished"], h["end"]) for h in ended] == [(True, "end_token")]
    assert ended[0]["logprob"] == pytest.approx(plain["hypotheses"][0]["steps"][0]["logprob"])
    for typed, said in (
        (["--end", "no such token"], "“no␣such␣token” is "),
        (["--end", ""], "At most 32 further end tokens"),
        (["--end", "#99999999"], "Token id 99999999 does not exist"),
    ):
        code, out, err = cli(*argv, *typed)
        assert (code, out) == (2, "")
        assert err.startswith(said)
    code, _, err = cli("run", "the", "--model", "tiny", "--end", ".")
    assert (code, err) == (
        2,
        "--end belongs to beam search; add --strategy beam, or leave it off.\n",
    )


@pytest.fixture(scope="module")
def tiny_model():
    from core.models.load import load

    return load("tiny", device="cpu", dtype="float32").model
