"""A chat is a text with control tokens: a template writes it, and the model reads it."""

from __future__ import annotations

from typing import Any

from core.faults import Fault


def render(template: str, text: str, *, system: str | None, start: str, end: str) -> str:
    """The string that the model reads for one message of a user, up to the answer's start.

    ``start`` and ``end`` are the contents of the model's first and last control token, which
    many templates print. The template comes with the model, so it is run in transformers'
    sandbox. Raises Fault when it fails.
    """
    # transformers is slow to import, and most runs never render a chat
    from transformers.utils.chat_template_utils import (  # noqa: PLC0415
        render_jinja_template,
    )

    messages = [{"role": "user", "content": text}]
    if system is not None:
        messages.insert(0, {"role": "system", "content": system})
    try:
        result: Any = render_jinja_template(
            conversations=[messages],
            chat_template=template,
            add_generation_prompt=True,
            bos_token=start,
            eos_token=end,
        )
    except Exception as error:  # a template is a program of the model's author: anything can happen
        raise Fault("chat_template_failed", reason=str(error) or type(error).__name__) from error
    return str(result[0][0])
