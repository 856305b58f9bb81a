"""Many machines: the model split among processes lengthwise, crosswise, or copied."""

from ui.context import Context
from ui.frame import page
from ui.parallel import draw


def body(context: Context) -> None:
    draw(context)


page("parallel", body)
