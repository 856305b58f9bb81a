"""Training: a few real steps on a copy, beside inference; and a draft that the model checks."""

from ui.context import Context
from ui.frame import page
from ui.training import draw


def body(context: Context) -> None:
    draw(context.t, context)


page("training", body, meanwhile=lambda t: draw(t, None))
