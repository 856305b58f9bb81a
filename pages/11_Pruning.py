"""Pruning: weights set to zero, parts taken out, and what is lost and saved."""

from ui.context import Context
from ui.frame import page
from ui.pruning import draw


def body(context: Context) -> None:
    draw(context.t, context)


page("pruning", body, meanwhile=lambda t: draw(t, None))
