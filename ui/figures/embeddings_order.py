"""The next token with the order of the tokens taken away, or mixed: before and after. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from core.ablation import Effect, Shift
from core.decode.measure import bits
from core.trace import Token
from ui.figures.embeddings import Label, token_data
from ui.figures.words import percent, signed
from ui.i18n import Catalog

TOP: Final = 10


def order_data(
    effect: Effect, before: Sequence[Token], after: Sequence[Token], label: Label, t: Catalog
) -> dict[str, Any]:
    """Both rankings side by side; ``before`` and ``after`` are the tokens in the order read."""
    chosen = effect.chosen
    return {
        "headline": t("embeddings.order_kl", kl=signed(bits(effect.kl))),
        "lists": [
            _list(effect, "before", _read(before, before), label, t),
            _list(effect, "after", _read(after, before), label, t),
        ],
        "verdict": t(
            "embeddings.order_chosen",
            token=label(chosen.id),
            before=percent(chosen.before),
            after=percent(chosen.after),
            rank_before=f"{chosen.rank_before:,}",
            rank_after=f"{chosen.rank_after:,}",
        ),
    }


def _read(tokens: Sequence[Token], before: Sequence[Token]) -> list[dict[str, Any]]:
    """The tokens, each with whether another one stood there before."""
    return [
        {**token_data(token), "moved": token.id != old.id}
        for token, old in zip(tokens, before, strict=True)
    ]


def _list(
    effect: Effect, side: str, tokens: list[dict[str, Any]], label: Label, t: Catalog
) -> dict[str, Any]:
    def rank(row: Shift, of: str) -> int:
        return row.rank_before if of == "before" else row.rank_after

    other = "after" if side == "before" else "before"
    rows = sorted((r for r in effect.top if rank(r, side) <= TOP), key=lambda r: rank(r, side))
    return {
        "title": t(f"embeddings.order_{side}"),
        "kind": "probability",
        "tokens": tokens,
        "rows": [
            {
                "rank": rank(row, side),
                "id": row.id,
                "label": label(row.id),
                "value": row.before if side == "before" else row.after,
                "marked": row.id == effect.chosen.id,
                "aside": t(f"embeddings.order_rank_{other}", n=f"{rank(row, other):,}"),
            }
            for row in rows
        ],
    }
