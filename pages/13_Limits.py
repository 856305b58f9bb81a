"""Limits: what this machine can do at most, and what would fit and run elsewhere."""

from ui.context import Context
from ui.frame import page
from ui.limits import draw


def body(context: Context) -> None:
    draw(context.t, context)


page("limits", body, meanwhile=lambda t: draw(t, None))
