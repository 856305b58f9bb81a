"""A traced step against transformers' own: one token more, after the same prompt.

Traced: attention rows and residuals of all layers and the logits are kept, and the greedy
choice is made with its ranks and entropies. Plain: ``generate`` of an untouched copy of the
model, timed from token to token. They take turns step by step in one process (``generate``
calls back after each of its tokens), so whatever disturbs the machine disturbs both. First
on the machine as it is, then while another process keeps a core busy. Goals: a ratio ≤ 1.00,
and a traced step ≤ 3 × itself next to a busy neighbour.
"""

from __future__ import annotations

import argparse
import os

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from transformers import AutoModelForCausalLM, StoppingCriteria, StoppingCriteriaList

from core.decode.choose import choose
from core.engine.local import LocalEngine
from core.models.catalog import DEFAULT, folder_of, resolve
from core.models.load import load
from core.settings import Settings
from core.trace import Capture

PROMPT = (
    "The lighthouse keeper wrote down the weather every morning: the wind, the height of the "
    "waves, the ships that passed, and whether the lamp had burned through the night. On the "
    "first day of the year the page was empty, because"
)
GREEDY = Settings(strategy="greedy")
PLAIN = "transformers generate"
TRACED = {
    "traced: attention, residuals, logits": Capture(),
    "the same with scores, q, k, v": Capture(scores=True),
}


class Traced:
    """Our loop, one step a call, on an engine that remembers nothing from before."""

    def __init__(self, loaded, ids: list[int], capture: Capture) -> None:
        self.engine = LocalEngine(loaded)
        self.prompt, self.path, self.capture = len(ids), list(ids), capture
        self.step()

    def step(self) -> float:
        """Milliseconds of one step."""
        began = time.perf_counter()
        made = len(self.path) - self.prompt
        forward = self.engine.forward(self.path, prompt_length=self.prompt, capture=self.capture)
        self.path.append(choose(forward.logits, GREEDY, step=made, with_stages=False).id)
        return 1000 * (time.perf_counter() - began)


class TakingTurns(StoppingCriteria):
    """Called after each token of ``generate``: notes its time, then lets the others step."""

    def __init__(self, others: dict[str, Traced], times: dict[str, list[float]]) -> None:
        self.others, self.times = others, times
        self.resumed: float | None = None

    def __call__(self, input_ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
        now = time.perf_counter()
        # The first call comes after the prompt was read, which is not a step.
        if self.resumed is not None:
            self.times[PLAIN].append(1000 * (now - self.resumed))
            for name, other in self.others.items():
                self.times[name].append(other.step())
        self.resumed = time.perf_counter()
        return torch.zeros(input_ids.shape[0], dtype=torch.bool)


def measure(untouched, loaded, ids: list[int], steps: int, rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in (PLAIN, *TRACED)}
    row = torch.tensor([ids])
    for _ in range(rounds):
        others = {name: Traced(loaded, ids, capture) for name, capture in TRACED.items()}
        untouched.generate(
            row,
            attention_mask=torch.ones_like(row),
            do_sample=False,
            max_new_tokens=steps + 1,
            min_new_tokens=steps + 1,
            stopping_criteria=StoppingCriteriaList([TakingTurns(others, times)]),
        )
    return times


@contextmanager
def busy_neighbour() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def table(title: str, times: dict[str, list[float]]) -> dict[str, float]:
    print(f"\n{title}\n{'':44}{'median':>9}{'min':>9}{'ratio':>8}   (ms a step; ratio of medians)")
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = next(iter(medians.values()))
    for name, values in times.items():
        print(f"  {name:42}{medians[name]:9.1f}{min(values):9.1f}{medians[name] / base:8.2f}")
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=4)
    choice = parser.parse_args()
    folder = folder_of(resolve(choice.model))
    loaded = load(choice.model, device="cpu", dtype="float32")
    untouched = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = list(LocalEngine(loaded).vocabulary.encode(PROMPT).ids)
    n, rounds = choice.steps, choice.rounds
    print(
        f"{choice.model}, {len(ids)} prompt tokens, {n} steps × {rounds} rounds, "
        f"{torch.get_num_threads()} threads, load average {os.getloadavg()[0]:.1f}"
    )
    measure(untouched, loaded, ids, 4, 1)  # warm-up
    quiet = table("Machine as it is", measure(untouched, loaded, ids, n, rounds))
    with busy_neighbour():
        busy = table("One core kept busy", measure(untouched, loaded, ids, n, rounds))
    base, own = list(quiet)[:2]
    print(f"\ntraced ÷ generate: {quiet[own] / quiet[base]:.2f}   (goal ≤ 1.00)")
    print(f"traced busy ÷ quiet: {busy[own] / quiet[own]:.2f}   (goal ≤ 3)")


if __name__ == "__main__":
    main()
