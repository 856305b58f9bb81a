"""The same as tables, and the sentences before a launch. Pure."""

from __future__ import annotations

import pandas as pd

from core.lab.parallel.deal import TensorPlan, even_ranks, most_ranks
from core.lab.parallel.records import OffloadRun, PipelineRun, ReplicaRun, TensorRun, Traffic
from core.lab.parallel.room import weights_of
from core.lab.parallel.stages import StagePlan, head_cost, layer_cost
from core.model_info import ModelInfo
from ui.figures.parallel_stages import where_text
from ui.figures.parallel_sums import strongest
from ui.figures.words import percent
from ui.i18n import Catalog


def advice(info: ModelInfo, plan: TensorPlan, t: Catalog) -> str:
    """What the numbers allow, in sentences, before anything is started."""
    said: dict[str, object] = {"heads": info.heads, "kv": info.kv_heads, "ranks": plan.ranks}
    counts = [hand.heads[1] - hand.heads[0] for hand in plan.hands]
    said["shares"] = " + ".join(map(str, counts))
    said["largest"] = max(counts)
    said["rank"] = counts.index(max(counts))
    sentences = [t(f"parallel.advice_{plan.attention}", **said)]
    even = even_ranks(info.heads, info.kv_heads, most_ranks())
    if plan.attention in ("uneven", "copied", "whole") and even:
        numbers = t("parallel.or").join(map(str, even))
        sentences.append(t("parallel.advice_even_ranks", numbers=numbers))
    return t("generate.sentence_join").join(sentences)


def split_table(info: ModelInfo, plan: TensorPlan, t: Catalog) -> pd.DataFrame:
    """Which heads, neurons and rows of the vocabulary went where."""
    sizes = weights_of(info, plan)
    return pd.DataFrame(
        [
            {
                t("parallel.col_rank"): hand.rank,
                t("parallel.col_heads"): _span(*hand.heads),
                t("parallel.col_kv"): _span(*hand.kv_heads),
                t("parallel.col_neurons"): _span(*hand.neurons),
                t("parallel.col_rows"): _span(*hand.rows),
                t("parallel.col_mb"): sizes[hand.rank] / 1e6,
            }
            for hand in plan.hands
        ]
    )


def _span(first: int, end: int) -> str:
    return "–" if end <= first else (str(first) if end == first + 1 else f"{first:,}–{end - 1:,}")


def sums_table(run: TensorRun, layer: int, part: int, position: int, t: Catalog) -> pd.DataFrame:
    """The components of the chart in numbers."""
    assert run.partials is not None
    assert run.sums is not None
    assert run.dense is not None
    rows = []
    for i in strongest(run, layer, part, position):
        total = float(run.sums[layer, part, position, i])
        single = float(run.dense[layer, part, position, i])
        row: dict[str, float] = {t("parallel.col_component"): i}
        for rank in range(run.plan.ranks):
            row[t("parallel.rank", n=rank)] = float(run.partials[rank, layer, part, position, i])
        row |= {t("parallel.sum"): total, t("parallel.single"): single}
        row[t("parallel.col_difference")] = total - single
        rows.append(row)
    return pd.DataFrame(rows)


def traffic_table(run: TensorRun, t: Catalog) -> pd.DataFrame:
    """Calls and bytes of one token and of the prompt, measured and by formula."""
    prefill = {each.kind: each for each in run.prefill_traffic}
    rows = []
    for each in run.step_traffic:
        whole = prefill[each.kind]
        rows.append(
            {
                t("parallel.col_sent"): t(f"parallel.sent_{each.kind}"),
                t("parallel.col_calls"): each.calls,
                t("parallel.col_bytes"): each.bytes,
                t("parallel.col_theory"): each.theory,
                t("parallel.col_prompt_bytes", n=run.tokens): whole.bytes,
                t("parallel.col_prompt_theory"): whole.theory,
            }
        )
    return pd.DataFrame(rows)


def total(found: tuple[Traffic, ...], kinds: tuple[str, ...]) -> int:
    """Bytes of these kinds together."""
    return sum(each.bytes for each in found if each.kind in kinds)


def ranks_table(run: TensorRun, t: Catalog) -> pd.DataFrame:
    """Memory and times of every rank."""
    rows = []
    for rank in run.ranks:
        step, waiting = rank.step, rank.waiting
        rows.append(
            {
                t("parallel.col_rank"): str(rank.rank),
                t("parallel.col_weights"): rank.weights / 1e6,
                t("parallel.col_kv_bytes"): rank.kv,
                t("parallel.col_process"): rank.process / 1e6,
                t("parallel.col_threads"): rank.threads,
                t("parallel.col_prefill"): rank.prefill_ms,
                t("parallel.col_step"): step.median if step else None,
                t("parallel.col_waiting"): waiting.median if waiting else None,
                t("parallel.col_range"): f"{step.low:.1f}–{step.high:.1f}" if step else "",
            }
        )
    single = run.single_step
    rows.append(
        {
            t("parallel.col_rank"): t("parallel.single"),
            t("parallel.col_weights"): run.single_weights / 1e6,
            t("parallel.col_prefill"): run.single_prefill_ms,
            t("parallel.col_step"): single.median if single else None,
            t("parallel.col_range"): f"{single.low:.1f}–{single.high:.1f}" if single else "",
        }
    )
    return pd.DataFrame(rows)


def stages_table(info: ModelInfo, plan: StagePlan, t: Catalog) -> pd.DataFrame:
    """What every stage gets."""
    each, last = layer_cost(info), head_cost(info)
    return pd.DataFrame(
        [
            {
                t("parallel.col_stage"): place,
                t("parallel.col_layers"): _span(a + 1, b + 1),
                t("parallel.cost_layers"): (b - a) * each / 1e6,
                t("parallel.cost_head"): last / 1e6 if place == plan.stages - 1 else 0.0,
            }
            for place, (a, b) in enumerate(plan.layers)
        ]
    )


def bubbles_table(run: PipelineRun, t: Catalog) -> pd.DataFrame:
    """Every number of micro-batches."""
    return pd.DataFrame(
        [
            {
                t("parallel.axis_micro"): found.micro_batches,
                t("parallel.col_took"): found.took.median,
                t("parallel.col_range"): f"{found.took.low:,.0f}–{found.took.high:,.0f}",
                t("parallel.bubble_measured"): percent(found.bubble),
                t("parallel.bubble_ideal"): percent(found.ideal),
                t("parallel.bubble_unequal"): percent(found.unequal),
                t("parallel.col_difference"): found.difference,
            }
            for found in run.runs
        ]
    )


def bars_table(run: PipelineRun, count: int, t: Catalog) -> pd.DataFrame:
    """Start and end of every piece of work."""
    found = next(each for each in run.runs if each.micro_batches == count)
    return pd.DataFrame(
        [
            {
                t("parallel.col_stage"): bar.stage,
                t("parallel.col_piece"): bar.micro_batch + 1,
                t("parallel.col_start"): round(bar.start, 1),
                t("parallel.col_end"): round(bar.end, 1),
            }
            for bar in found.bars
        ]
    )


def places_table(run: OffloadRun, t: Catalog) -> pd.DataFrame:
    """What lives where."""
    return pd.DataFrame(
        [
            {
                t("parallel.col_first"): place.first,
                t("parallel.col_last"): place.last,
                t("parallel.col_modules"): place.modules,
                t("parallel.col_where"): where_text(place.where, t),
                t("parallel.col_weights"): place.bytes / 1e6,
            }
            for place in run.places
        ]
    )


def servings_table(run: ReplicaRun, t: Catalog) -> pd.DataFrame:
    """Every setting."""
    return pd.DataFrame(
        [
            {
                t("parallel.col_copies"): one.replicas,
                t("parallel.col_texts"): one.batch,
                t("parallel.col_step"): one.step.median,
                t("parallel.col_range"): f"{one.step.low:.1f}–{one.step.high:.1f}",
                t("parallel.axis_throughput"): one.per_second,
            }
            for one in run.servings
        ]
    )
