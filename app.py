"""Home: the whole journey of one prediction, on one screen."""

from ui.components.journey import journey
from ui.frame import Context, page


def body(context: Context) -> None:
    journey(context, key="journey")


page("home", body)
