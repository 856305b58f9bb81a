"""What `inspect` was asked, and the model or its tokenizer alone, opened when first needed."""

from __future__ import annotations

import argparse
from functools import cached_property

from core.cli import show
from core.cli.numbers import whole
from core.engine.cost import check_prompt
from core.engine.protocol import Engine
from core.engine.store import build
from core.faults import Fault
from core.models.catalog import resolve
from core.settings import RunSpec
from core.text.opened import open_vocabulary
from core.tokens import Encoded, Vocabulary
from core.trace import Token


class Question:
    """A prompt, and which part of what the model makes of it.

    ``layer``, ``head`` and ``position`` are as typed: ``None`` where they were not, and to be
    checked with :meth:`place` by whoever uses them.
    """

    def __init__(self, typed: argparse.Namespace) -> None:
        self.spec = RunSpec(typed.model, typed.prompt, literal=typed.literal, chat=typed.chat)
        self.entry = resolve(typed.model)
        self.layer = whole("layer", typed.layer)
        self.head = whole("head", typed.head)
        self.position = whole("position", typed.position)

    @cached_property
    def engine(self) -> Engine:
        """The model. Raises Fault when it cannot be had."""
        with show.Progress(self.spec.model) as progress:
            return build(self.entry, progress)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer; opening it loads no weights. Raises Fault when it cannot be had."""
        return open_vocabulary(self.entry)

    @cached_property
    def encoded(self) -> Encoded:
        """The prompt as it is read. Raises Fault for an unreadable or empty one."""
        read = self.vocabulary.read(
            self.spec.prompt, chat=self.spec.chat, literal=self.spec.literal
        )
        if not read.ids:
            raise Fault("empty_prompt")
        return read

    @property
    def ids(self) -> tuple[int, ...]:
        return self.encoded.ids

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return self.vocabulary.tokens(self.ids, len(self.ids))

    def fits(self) -> tuple[int, ...]:
        """The ids, for a forward pass. Raises Fault when they are too many for the model."""
        check_prompt(self.engine.info, len(self.ids))
        return self.ids

    def place(self, name: str, value: int | None, count: int) -> int | None:
        """``value`` as an index below ``count``; -1 is the last, ``None`` stays.

        ``name`` is the flag's, for the fault that is raised for anything else.
        """
        if value is None:
            return None
        if not -1 <= value < count:
            raise Fault("setting_out_of_range", name=name, value=value, low=0, high=count - 1)
        return value % count
