"""The run in numbers: its figures, and the chain rule written out. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import pandas as pd

from core.decode.measure import bits
from core.trace import Generation, StepTrace
from ui.figures.words import in_time, latex_probability, percent, signed
from ui.i18n import Catalog

FACTORS = 3
"""Factors of the chain rule that are written out; the table has all of them."""


@dataclass(frozen=True)
class Figure:
    """One number of the run with its name, a note and an explanation."""

    name: str
    value: str
    note: str
    help: str


def logs(run: Generation) -> list[float]:
    """ln p of each chosen token under the model's own distribution."""
    chosen = [step.choice.probability_model for step in run.steps]
    return [math.log(p) if p > 0 else -math.inf for p in chosen]


def run_figures(run: Generation, step: StepTrace, t: Catalog) -> list[Figure]:
    """The figures of the page, for the run and for the step in view."""
    choice = step.choice
    count = len(run.steps)
    perplexity = run.perplexity or math.inf

    def figure(name: str, value: str, **values: object) -> Figure:
        note = t(f"generate.{name}_note", **values)
        return Figure(t(f"generate.{name}"), value, note, t(f"generate.{name}_help"))

    def entropy(name: str, nats: float) -> Figure:
        value = t("generate.bits", n=f"{bits(nats):.2f}")
        return figure(name, value, nats=f"{nats:.3f}", n=f"{math.exp(nats):,.1f}")

    return [
        figure("logprob", signed(run.logprob), n=count),
        figure("perplexity", _round(perplexity), n=count),
        entropy("entropy_model", choice.entropy_model),
        entropy("entropy_filtered", choice.entropy_filtered),
        figure("made", str(count), limit=run.spec.settings.max_new),
        Figure(
            t("generate.ms"),
            _time(step.forward.ms, t),
            _mean_time(run, t),
            t("generate.ms_help"),
        ),
    ]


def _mean_time(run: Generation, t: Catalog) -> str:
    """The mean time of the steps after the first one, which reads the whole prompt, and of which
    steps it is."""
    times = [step.forward.ms for step in run.steps]
    if len(times) == 1:
        return t("generate.ms_first")
    rest = times[1:]
    mean = _time(sum(rest) / len(rest), t)
    if len(rest) == 1:
        return t("generate.ms_note_one", mean=mean)
    return t("generate.ms_note", last=len(times), mean=mean)


def _time(ms: float, t: Catalog) -> str:
    """As on the command line, with the unit in the reader's language."""
    number, unit = in_time(ms).split()
    return t("generate.seconds" if unit == "s" else "generate.milliseconds", n=number)


def _round(x: float) -> str:
    return "∞" if math.isinf(x) else f"{x:,.2f}" if x < 1000 else f"{x:,.0f}"


def stop_sentence(run: Generation, last: str, t: Catalog) -> str:
    """Why the run stands still, or that it can go on."""
    if run.stop is None:
        return t("generate.stop_none")
    return t(f"strip.stop_{run.stop}", limit=run.spec.settings.max_new, token=last)


def chain_latex(run: Generation, t: Catalog) -> str:
    """The chain rule with this run's first factors: numbers only, never the text of a token."""
    each = logs(run)
    shown = [latex_probability(ln) for ln in each]
    if len(each) > FACTORS + 1:
        shown[FACTORS:-1] = [r"\cdots"]
    factors = r" \cdot ".join(f"({f})" if "times" in f else f for f in shown)
    total = sum(each)
    power = r"-\infty" if total == -math.inf else f"{total:.3f}"
    n = len(each)
    tokens = {1: "x_1", 2: "x_1,x_2"}.get(n, rf"x_1,\dots,x_{{{n}}}")
    prompt = t("generate.prompt")
    lines = (
        rf"&P({tokens}\mid\text{{{prompt}}})=\prod_{{i=1}}^{{{n}}}p_i",
        rf"&={factors}",
        rf"&=e^{{{power}}}={latex_probability(total)}",
    )
    return "".join([r"\begin{aligned}", r"\\".join(lines), r"\end{aligned}"])


def chain_table(run: Generation, labels: Sequence[str], t: Catalog) -> pd.DataFrame:
    """One row a step: token, p, ln p, and the running sum of ln p."""
    each = logs(run)
    return pd.DataFrame(
        {
            t("generate.col_step"): range(1, len(each) + 1),
            t("generate.col_token"): list(labels),
            t("generate.col_p"): [step.choice.probability_model for step in run.steps],
            t("generate.col_ln"): each,
            t("generate.col_sum"): list(accumulate(each)),
            t("generate.col_rule"): [t(f"generate.rule_{step.choice.rule}") for step in run.steps],
        }
    )


def steps_table(run: Generation, labels: Sequence[str], t: Catalog) -> pd.DataFrame:
    """The numbers behind the chart of the steps."""
    return pd.DataFrame(
        {
            t("generate.col_step"): range(1, len(run.steps) + 1),
            t("generate.col_token"): list(labels),
            t("generate.col_percent"): [percent(s.choice.probability_model) for s in run.steps],
            t("generate.col_entropy"): [round(bits(s.choice.entropy_model), 3) for s in run.steps],
            t("generate.col_entropy_filtered"): [
                round(bits(s.choice.entropy_filtered), 3) for s in run.steps
            ],
            t("generate.col_rank"): [s.choice.rank for s in run.steps],
            t("generate.col_ms"): [round(s.forward.ms, 1) for s in run.steps],
        }
    )
