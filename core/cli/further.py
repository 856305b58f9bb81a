"""The options of the further stages: typical-p, and what looks at the text so far."""

from __future__ import annotations

import argparse
from typing import Any, Final

from core.cli.numbers import number, whole
from core.settings import PROCESSOR_NAMES

NAMES: Final = ("typical_p", *PROCESSOR_NAMES)


def add(command: argparse.ArgumentParser) -> None:
    """Their flags."""
    put = command.add_argument
    put("--typical-p", metavar="P", help="keep the tokens about as surprising as expected")
    put("--repetition-penalty", metavar="X", help="divide the scores of tokens that the text has")
    put("--presence-penalty", metavar="X", help="subtract X from those of generated tokens")
    put("--frequency-penalty", metavar="X", help="the same, for each time a token was generated")
    put("--no-repeat-ngram", metavar="N", help="no sequence of N tokens comes twice")
    put("--ban", metavar="TEXT", action="append", default=[], help="never write TEXT; repeatable")
    put("--pattern", metavar="REGEX", help="what is generated has to match REGEX as a whole")


def given(typed: argparse.Namespace) -> dict[str, Any]:
    """Fields of Settings, ``None`` for what was not typed. Raises Fault for no numbers."""
    return {
        "typical_p": number("typical-p", typed.typical_p),
        "repetition_penalty": number("repetition-penalty", typed.repetition_penalty),
        "presence_penalty": number("presence-penalty", typed.presence_penalty),
        "frequency_penalty": number("frequency-penalty", typed.frequency_penalty),
        "no_repeat_ngram": whole("no-repeat-ngram", typed.no_repeat_ngram),
        "banned": tuple(typed.ban) or None,
        "pattern": typed.pattern,
    }
