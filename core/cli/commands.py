"""The three commands. Each raises Fault for what the reader can mend."""

from __future__ import annotations

import argparse

from core import decode
from core.cli import arguments, beams, records, show
from core.cli.numbers import listed
from core.cli.output import check_target, write_json
from core.decode.measure import checked
from core.decode.past import Past
from core.engine.store import build
from core.engine.toy import logits_of
from core.faults import Fault
from core.models.catalog import catalogue_rows, resolve, state_on_disk
from core.models.fetch import fetch
from core.settings import RunSpec
from core.trace import Capture

MAX_ID = 2**31
"""Above every id that a vocabulary has."""


def models(typed: argparse.Namespace) -> None:
    if typed.action == "fetch":
        entry = resolve(typed.name)
        if state_on_disk(entry) == "absent" and entry.needs_terms:
            show.terms(entry)
        with show.Progress(entry.name) as progress:
            folder = fetch(entry, progress)
        print(f"{entry.name} is ready" + (f" in {folder}" if folder else ""))
    elif typed.json:
        write_json(catalogue_rows(), "-")
    else:
        show.catalogue(catalogue_rows())


def run(typed: argparse.Namespace) -> None:
    if arguments.is_beam(typed):
        beams.run(typed)
        return
    settings, top = arguments.settings_of(typed), arguments.top(typed)
    check_target(typed.json)
    spec = RunSpec(typed.model, typed.prompt, settings, literal=typed.literal, chat=typed.chat)
    with show.Progress(spec.model) as progress:
        engine = build(resolve(spec.model), progress)
    listing = None if typed.json else show.Listing(engine)
    with show.Interrupt() as interrupt:
        made = decode.run(
            engine,
            spec,
            capture=Capture(attention=False),
            on_step=interrupt.after(listing.step if listing else None),
        )
    if listing is None:
        write_json(records.run_record(made, engine.vocabulary, top), typed.json)
    else:
        listing.end(made)


def choose(typed: argparse.Namespace) -> None:
    settings = arguments.settings_of(typed)
    for option, value in (("--ban", settings.banned), ("--pattern", settings.pattern)):
        if value:
            raise Fault("only_with_model", option=option)
    check_target(typed.json)
    if typed.probs is not None:
        logits = logits_of(listed(typed.probs, "--probs", "[0.5, 0.3, 0.2]"))
    else:
        logits = checked(listed(typed.logits, "--logits", "[3, 2, 1]"))
    choice = decode.choose(logits, settings, step=0, past=_past(typed.past))
    if typed.json:
        write_json(records.choose_record(choice), typed.json)
    else:
        show.stages(choice)


def _past(text: str | None) -> Past:
    """The ids that count as generated. Raises Fault for what is no list of them."""
    if text is None or not text.strip(" []"):
        return Past()
    ids = listed(text, "--past", "[2, 0]")
    if not all(id >= 0 and id.is_integer() and id < MAX_ID for id in ids):
        raise Fault("numbers_not_a_list", option="--past", example="[2, 0]")
    return Past(tuple(map(int, ids)), 0)
