"""KV cache: the same text with and without it, what it holds, and how to make it smaller."""

from ui.context import Context
from ui.frame import page
from ui.kv import draw


def body(context: Context) -> None:
    draw(context.t, context)


page("kv_cache", body, meanwhile=lambda t: draw(t, None))
