"""The three commands. Each raises Fault for what the reader can mend."""

from __future__ import annotations

import argparse

from core import decode
from core.cli import arguments, beams, records, show
from core.cli.output import check_target, write_json
from core.decode.measure import checked
from core.engine.store import build
from core.engine.toy import logits_of
from core.faults import Fault
from core.models.catalog import catalogue_rows, resolve, state_on_disk
from core.models.fetch import fetch
from core.settings import RunSpec
from core.trace import Capture


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
    check_target(typed.json)
    if typed.probs is not None:
        logits = logits_of(_numbers(typed.probs, "--probs", "[0.5, 0.3, 0.2]"))
    else:
        logits = checked(_numbers(typed.logits, "--logits", "[3, 2, 1]"))
    choice = decode.choose(logits, settings, step=0)
    if typed.json:
        write_json(records.choose_record(choice), typed.json)
    else:
        show.stages(choice)


def _numbers(text: str, option: str, example: str) -> list[float]:
    """``[0.5, 0.3]``, brackets optional. Raises Fault for anything else."""
    body = text.strip()
    if body.startswith("[") and body.endswith("]"):
        body = body[1:-1]
    try:
        return [float(part) for part in body.split(",")]
    except ValueError:
        raise Fault("numbers_not_a_list", option=option, example=example) from None
