"""The options of ``run`` that belong to beam search."""

from __future__ import annotations

import argparse
from typing import Final

from core.settings import BEAM_KINDS, STOP_RULES

NAMES: Final = (
    "beams",
    "length_penalty",
    "stop",
    "nbest",
    "end",
    "beam_kind",
    "groups",
    "diversity",
)


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("--beams", metavar="W", help="texts that beam search keeps (default: 4)")
    command.add_argument(
        "--length-penalty", metavar="A", help="score = sum of ln p / length^A (default: 0, off)"
    )
    command.add_argument(
        "--stop",
        metavar="|".join(STOP_RULES),
        help="when W texts are complete, or when no other can still win (default: best)",
    )
    command.add_argument("--nbest", metavar="N", help="texts returned (default: W)")
    command.add_argument(
        "--end",
        metavar="TEXT|#ID",
        action="append",
        help="also ends a text: what one token writes, such as '.' or '\\n', or an id, such as "
        "'#13'; once for each; '#none' leaves the model's own end tokens out",
    )
    command.add_argument(
        "--beam-kind",
        metavar="|".join(BEAM_KINDS),
        help="the likeliest texts; drawn ones, with --temperature and --seed; or groups that "
        "keep out of each other's way (default: plain)",
    )
    command.add_argument("--groups", metavar="G", help="of diverse beams (default: 2)")
    command.add_argument(
        "--diversity",
        metavar="D",
        help="nats that a token costs for each beam of an earlier group that took it (0.5)",
    )
