"""The vocabulary of a model whose weights stay where they are."""

from __future__ import annotations

from pathlib import Path

from core.models.catalog import ModelEntry
from core.models.tiny_text import CHAT_TEMPLATE, END
from core.models.tokenizer import chat_template, facts_in, open_tokenizer, tokenizer_folder
from core.tokens import Vocabulary


def open_vocabulary(entry: ModelEntry) -> Vocabulary:
    """The same vocabulary that the loaded model would have.

    Raises Fault when the model is not on this machine or has no tokenizer that can be read.
    """
    if entry.kind == "toy":
        from core.engine.toy import open_toy  # noqa: PLC0415 - it needs the vocabulary itself

        return open_toy(entry.path).vocabulary
    tokenizer = open_tokenizer(entry)
    if entry.kind == "tiny":
        ends = [id for id in [tokenizer.token_to_id(END)] if id is not None]
        return Vocabulary(tokenizer, end_ids=ends, chat_template=CHAT_TEMPLATE)
    folder = tokenizer_folder(entry) or Path()
    size, end_ids = facts_in(folder)
    return Vocabulary(tokenizer, size=size, end_ids=end_ids, chat_template=chat_template(folder))
