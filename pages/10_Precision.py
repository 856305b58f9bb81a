"""Precision: fewer bits a weight, what they cost, and what they save."""

from ui.context import Context
from ui.frame import page
from ui.precision import draw


def body(context: Context) -> None:
    draw(context.t, context)


page("precision", body, meanwhile=lambda t: draw(t, None))
