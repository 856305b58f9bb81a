"""What can be typed, and its translation into settings.

Every fault of the reader's ends as one sentence; argparse's own are turned into one, too.
"""

from __future__ import annotations

import argparse
from typing import Any, Final, NoReturn

from core.cli import beam_options, further, lab, lab_common
from core.cli.numbers import number, whole
from core.edits.spec import join, parse_edit, spell, split
from core.faults import Fault
from core.settings import (
    BEAM_KINDS,
    STAGE_NAMES,
    STRATEGIES,
    BeamSettings,
    FilterName,
    RunSpec,
    Settings,
)

DEFAULT_MODEL: Final = RunSpec().model
MAX_TOP: Final = 1_000_000
BEAM: Final = "beam"
"""The strategy that is a search, with settings of its own."""

OPTIONS: Final = {"forced": "force", "banned": "ban"}
"""What settings are called when typed, where it is something else."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises Fault instead of printing its usage."""

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:
        """As in argparse, whose older versions read ``--top-k=--`` as an empty list."""
        typed = super().parse_args(*args, **kwargs)
        for name, value in vars(typed).items():
            many = value or name in ("force", "column", "ban", "end")
            if isinstance(value, list) and not (many and all(isinstance(v, str) for v in value)):
                self.error(f"--{name.replace('_', '-')} needs a value")
        if getattr(typed, "edit", None):
            # Whoever can name a model can name an edited one.
            typed.model = join(split(typed.model)[0], spell(parse_edit(typed.edit)))
        return typed

    def error(self, message: str) -> NoReturn:
        said = " ".join(message.split())
        raise Fault("usage", message=said[:1].upper() + said[1:], command=self.prog)


def parser() -> Parser:
    top = Parser(prog="python -m core", description=__doc__, allow_abbrev=False)
    top.description = "Token by Token without a browser."
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _models(commands.add_parser("models", help="list or fetch models", allow_abbrev=False))
    _run(commands.add_parser("run", help="continue a prompt, step by step", allow_abbrev=False))
    _choose(commands.add_parser("choose", help="the filters on typed numbers", allow_abbrev=False))
    _inspect(commands.add_parser("inspect", help="look inside one step", allow_abbrev=False))
    _compare(commands.add_parser("compare", help="strategies side by side", allow_abbrev=False))
    lab.add(commands.add_parser("lab", help="experiments on speed and size", allow_abbrev=False))
    return top


def _models(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="the catalogue as JSON")
    actions = command.add_subparsers(dest="action", metavar="fetch")
    fetch = actions.add_parser("fetch", help="download and convert a model", allow_abbrev=False)
    fetch.add_argument("name", metavar="NAME")


def _run(command: argparse.ArgumentParser) -> None:
    _prompt(command)
    _settings(command, (*STRATEGIES, BEAM))
    beam_options.add(command)
    command.add_argument("--max-new", metavar="N", help="stop after N new tokens (default: 24)")
    command.add_argument("--top", metavar="N", default="10", help="tokens listed for each stage")
    _json(command)


def _prompt(command: argparse.ArgumentParser) -> None:
    command.add_argument("prompt", metavar="PROMPT")
    command.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        metavar="NAME|toy:FILE.json|PATH",
        help=f"a name of the catalogue, a hub id or a folder (default: {DEFAULT_MODEL})",
    )
    lab_common.add_edit(command)
    command.add_argument(
        "--literal", action="store_true", help="read control strings in the prompt as plain text"
    )
    command.add_argument("--chat", action="store_true", help="apply the model's chat template")


def _compare(command: argparse.ArgumentParser) -> None:
    _prompt(command)
    command.add_argument(
        "--column",
        metavar="STRATEGY",
        action="append",
        help='a strategy, such as greedy, beam,beams=8 or "sample,top_p=0.9,seed=1"; up to 12',
    )
    command.add_argument(
        "--sweep",
        metavar="NAME:LOW:HIGH:COUNT",
        help="one strategy with each value of a parameter instead, such as temperature:0:2:9",
    )
    command.add_argument("--samples", metavar="N", help="texts of each strategy that throws dice")
    command.add_argument(
        "--dice",
        metavar="same|own",
        help="random numbers for all strategies alike, but for those that name another seed; or "
        "for each its own (default: same)",
    )
    command.add_argument("--max-new", metavar="N", help="stop after N new tokens (default: 24)")
    _json(command)


def _inspect(command: argparse.ArgumentParser) -> None:
    _prompt(command)
    command.add_argument(
        "--what",
        default="tokens",
        metavar="PART",
        help="tokens, merges, embeddings, attention, lens or residual (default: tokens)",
    )
    command.add_argument("--layer", metavar="L", help="one layer, counted from 0; -1 is the last")
    command.add_argument("--head", metavar="H", help="one head, counted from 0")
    command.add_argument("--position", metavar="I", help="one token, counted from 0")
    _json(command)


def _choose(command: argparse.ArgumentParser) -> None:
    numbers = command.add_mutually_exclusive_group(required=True)
    numbers.add_argument(
        "--probs",
        metavar="LIST",
        help="probabilities, such as [0.5, 0.3, 0.2]; a sum within 0.001 of 1 is made exact",
    )
    numbers.add_argument("--logits", metavar="LIST", help="scores, such as [3, 2, 1]")
    _settings(command)
    command.add_argument(
        "--past", metavar="LIST", help="ids of the tokens so far, such as [2, 0], for the penalties"
    )
    _json(command)


def _settings(command: argparse.ArgumentParser, strategies: tuple[str, ...] = STRATEGIES) -> None:
    command.add_argument("--strategy", metavar="|".join(strategies))
    command.add_argument("--temperature", metavar="T", help="divides the logits; 0 is greedy")
    command.add_argument("--top-k", metavar="K", help="keep the K highest tokens")
    command.add_argument("--top-p", metavar="P", help="keep the smallest set that reaches P")
    command.add_argument("--min-p", metavar="P", help="drop what has less than P of the highest")
    further.add(command)
    command.add_argument(
        "--order",
        metavar=",".join(STAGE_NAMES),
        help="the filters in the order wanted; those left out follow in the usual order",
    )
    command.add_argument("--seed", metavar="S", help="of the random numbers (default: 0)")
    command.add_argument(
        "--force",
        metavar="STEP:ID",
        nargs="+",
        action="extend",
        default=[],
        help="take token ID at STEP (counted from 0), whatever the dice say",
    )


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--json", metavar="-|FILE", nargs="?", const="-", help="JSON to the screen or to a file"
    )


def settings_of(typed: argparse.Namespace) -> Settings:
    """The settings that were typed; what was not typed keeps its default. Raises Fault."""
    given = {
        "strategy": typed.strategy,
        "temperature": number("temperature", typed.temperature),
        "top_k": whole("top-k", typed.top_k),
        "top_p": number("top-p", typed.top_p),
        "min_p": number("min-p", typed.min_p),
        "order": None if typed.order is None else order(typed.order),
        "seed": whole("seed", typed.seed),
        "max_new": whole("max-new", getattr(typed, "max_new", None)),
        "forced": tuple(map(pair, typed.force)),
        **further.given(typed),
    }
    return Settings(**{name: value for name, value in given.items() if value is not None})


def is_beam(typed: argparse.Namespace) -> bool:
    """Whether beam search is asked for. Raises Fault for an unknown strategy, and for options
    of beam search without it."""
    known = (*STRATEGIES, BEAM)
    if typed.strategy is not None and typed.strategy not in known:
        raise Fault("unknown_strategy", value=typed.strategy, allowed=", ".join(known))
    if typed.strategy == BEAM:
        return True
    for name in beam_options.NAMES:
        if getattr(typed, name) is not None:
            raise Fault("only_with_beam", option=f"--{name.replace('_', '-')}")
    return False


def beam_settings_of(typed: argparse.Namespace) -> BeamSettings:
    """The settings that were typed for a beam search. Raises Fault.

    An option that would change the model's probabilities is refused, but for the temperature of
    the draws of sampled beams. Without draws the seed, and always the order of the filters,
    change nothing, and are read only to find mistakes.
    """
    kind = typed.beam_kind or "plain"
    drawn = {"temperature": None} if kind == "sampled" else {}
    plain = settings_of(argparse.Namespace(**{**vars(typed), "strategy": None, **drawn}))
    for name in ("temperature", "top_k", "top_p", "min_p", "forced", *further.NAMES):
        if getattr(plain, name) != getattr(Settings(), name):
            option = f"--{OPTIONS.get(name, name).replace('_', '-')}"
            raise Fault("not_with_beam", option=option)
    given = {
        "width": whole("beams", typed.beams),
        "length_penalty": number("length-penalty", typed.length_penalty),
        "stop": typed.stop,
        "nbest": whole("nbest", typed.nbest),
        "max_new": whole("max-new", typed.max_new),
        "ends": typed.end and tuple(typed.end),
        "kind": typed.beam_kind,
        "groups": whole("groups", typed.groups),
        "diversity": number("diversity", typed.diversity),
    }
    if kind == "sampled":
        given["temperature"] = number("temperature", typed.temperature)
        given["seed"] = plain.seed
    if kind in BEAM_KINDS and kind != "diverse":
        for name in ("groups", "diversity"):
            if given[name] is not None:
                raise Fault("only_with_diverse", option=f"--{name}")
    return BeamSettings(**{name: value for name, value in given.items() if value is not None})


def order(text: str) -> tuple[FilterName, ...]:
    """The stages as typed, then those not named. Unknown and repeated ones are left to Settings."""
    named = [part.strip().replace("-", "_") for part in text.split(",")]
    known: dict[str, FilterName] = {name: name for name in STAGE_NAMES}
    if len(set(named)) < len(named) or not set(named) <= known.keys():
        raise Fault("bad_order", value=text, allowed=",".join(STAGE_NAMES))
    return (*(known[name] for name in named), *(n for n in STAGE_NAMES if n not in named))


def pair(text: str) -> tuple[int, int]:
    """``STEP:ID``. Raises Fault for anything else."""
    step, _, token = text.partition(":")
    if not (step.isdecimal() and token.isdecimal() and len(text) < 40):
        raise Fault("force_not_a_pair", value=text)
    return int(step), int(token)


def top(typed: argparse.Namespace) -> int:
    """How many tokens each stage lists. Raises Fault for what is no number from 0."""
    count = whole("top", typed.top) or 0
    if not 0 <= count <= MAX_TOP:
        raise Fault("setting_out_of_range", name="top", value=count, low=0, high=MAX_TOP)
    return count
