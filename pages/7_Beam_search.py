"""Beam search: several texts at once, and the candidates that lost."""

from ui.beam_page import draw
from ui.context import Context
from ui.frame import page


def body(context: Context) -> None:
    draw(context.t, context)


page("beam_search", body, meanwhile=lambda t: draw(t, None))
