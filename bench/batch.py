"""Many texts at once against one, both through ``Engine.next_logits``, taking turns step by step.

Six columns ÷ one column (goal < 2.5), a beam search of width 8 ÷ greedy, per step, with all that
the search does besides (goal < 3), and 100 samples. Medians of a step in one process, so whatever
disturbs the machine disturbs both; processor time is told too, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import os

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import itertools
import statistics
import time
from collections.abc import Callable

import torch

from core.decode.beam import BeamRun, provider_of
from core.decode.choose import choose
from core.engine.local import LocalEngine
from core.engine.protocol import Engine
from core.models.catalog import DEFAULT
from core.models.load import load
from core.settings import BeamSettings, Settings

PROMPT = (
    "The lighthouse keeper wrote down the weather every morning: the wind, the height of the "
    "waves, the ships that passed, and whether the lamp had burned through the night. On the "
    "first day of the year the page was empty, because"
)
MODELS = (DEFAULT, "gemma3-270m")
Step = Callable[[], None]
_numbers = itertools.count()


def columns(
    engine: Engine,
    ids: tuple[int, ...],
    count: int,
    *,
    forward: bool = False,
    chosen: bool = True,
) -> Step:
    """Texts of one prompt, one step a call: each sampled with a seed of its own, or the model
    alone, with the next token given."""
    texts, run = [ids] * count, next(_numbers)

    def step() -> None:
        made = len(texts[0]) - len(ids)
        if forward:
            rows = [engine.forward(text, prompt_length=len(ids)).logits for text in texts]
        else:
            rows = list(engine.next_logits(texts, prompt_length=len(ids), run=run))
        for place, row in enumerate(rows):
            token = 100 + (7 * place + made) % 1000
            if chosen:
                settings = Settings(seed=1000 * run + place)
                token = choose(row, settings, step=made, with_stages=False).id
            texts[place] = (*texts[place], token)

    return step


def greedy(engine: Engine, ids: tuple[int, ...]) -> Step:
    """What a page's greedy run does, one step a call."""
    text, settings = [ids], Settings(strategy="greedy")

    def step() -> None:
        made = len(text[0]) - len(ids)
        row = engine.forward(text[0], prompt_length=len(ids)).logits
        text[0] = (*text[0], choose(row, settings, step=made, with_stages=False).id)

    return step


def beams(engine: Engine, ids: tuple[int, ...], width: int) -> Step:
    """A beam search, its own work included, one step a call."""
    run = BeamRun(BeamSettings(width=width, max_new=512), (), prompt=ids)
    provider = provider_of(engine, ids, next(_numbers))
    return lambda: void(run.advance(provider(run.wanted)))


def void(_: object) -> None:
    """A step's value is not wanted here."""


def measure(steps: dict[str, Step], turns: int) -> dict[str, list[tuple[float, float]]]:
    """(wall, processor) milliseconds of each step; the first, which reads the prompt, and the
    one that may try out batches are left out."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for turn in range(turns + 2):
        for name, step in steps.items():
            wall, processor = time.perf_counter(), time.process_time()
            step()
            spent = time.perf_counter() - wall, time.process_time() - processor
            if turn > 1:
                times[name].append((1000 * spent[0], 1000 * spent[1]))
    return times


def medians(title: str, times: dict[str, list[tuple[float, float]]]) -> list[tuple[float, float]]:
    found = [
        (statistics.median(w for w, _ in values), statistics.median(p for _, p in values))
        for values in times.values()
    ]
    print(f"\n{title:36}{'wall':>9}{'ratio':>8}{'processor':>12}{'ratio':>8}   (median ms a step)")
    for name, (wall, processor) in zip(times, found, strict=True):
        print(
            f"  {name:34}{wall:9.1f}{wall / found[0][0]:8.2f}"
            f"{processor:12.1f}{processor / found[0][1]:8.2f}"
        )
    return found


def told(title: str, many: tuple[float, float], one: tuple[float, float], more: str) -> None:
    print(f"{title}: {many[0] / one[0]:.2f}, processor {many[1] / one[1]:.2f}   ({more})")


def of_model(name: str, turns: int) -> None:
    # Two engines on one model: what one has read must not help the other.
    loaded = load(name, device="cpu", dtype="float32")
    one, many = LocalEngine(loaded), LocalEngine(loaded)
    ids = many.vocabulary.encode(PROMPT).ids
    print(
        f"\n{name}, {len(ids)} prompt tokens, {turns} steps, {torch.get_num_threads()} threads, "
        f"load average {os.getloadavg()[0]:.1f}"
    )
    model = medians(
        "The model alone",
        measure(
            {
                "1 text": columns(one, ids, 1, chosen=False),
                "6 texts, one batch": columns(many, ids, 6, chosen=False),
                "8 texts, one batch": columns(many, ids, 8, chosen=False),
            },
            turns,
        ),
    )
    found = medians(
        "Columns, with their choices",
        measure(
            {
                "1 column": columns(one, ids, 1),
                "6 columns, one batch": columns(many, ids, 6),
                "6 columns, one by one": columns(LocalEngine(loaded), ids, 6, forward=True),
                "100 samples, one batch": columns(many, ids, 100),
            },
            turns,
        ),
    )
    column, six, _, hundred = found
    search = medians(
        "Beams",
        measure({"greedy": greedy(one, ids), "beam search, width 8": beams(many, ids, 8)}, turns),
    )
    line, eight = search
    print()
    told("6 texts ÷ 1, the model alone", model[1], model[0], "goal < 2.5")
    told("6 columns ÷ 1", six, column, "goal < 2.5")
    told("beam of 8 ÷ greedy", eight, line, "goal < 3")
    told("100 samples ÷ 1", hundred, column, f"{100_000 / hundred[0]:.0f} tokens/s")
    print(f"memory kept: {many.bytes_remembered / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", action="append", help="may be given twice (default: both)")
    parser.add_argument("--turns", type=int, default=16)
    choice = parser.parse_args()
    for name in choice.model or MODELS:
        of_model(name, choice.turns)


if __name__ == "__main__":
    main()
