"""What the Layers page asks of the engine: the step's positions, their lens, their parts.

Lens columns are remembered for all readers; forward passes are, in their engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from core.engine.memory import ByteLRU
from core.faults import Fault, NotReady
from core.lens import Column, distance_to_own, lens_column
from core.recorded import RecordedEngine
from core.residual import Stream, stream
from core.trace import Capture, Forward, Token
from ui import state
from ui.context import Context
from ui.figures.journey import rise
from ui.figures.journey_rows import owner
from ui.figures.layers import window, window_width
from ui.view import CELLS

COLUMN_BYTES: Final = 64_000_000
PART_BYTES: Final = 100_000_000
"""Parts and neurons of a prompt are kept together up to this size, else of one position."""
PATIENCE: Final = 0.5
"""Seconds after which a computation shows its progress."""
PARTS: Final = Capture(attention=False, parts=True)
INSIDE: Final = Capture(attention=False, parts=True, neurons=True)


@st.cache_resource(show_spinner=False)
def _columns() -> ByteLRU[Any, Column]:
    return ByteLRU(COLUMN_BYTES)


@dataclass(frozen=True)
class Reading:
    """The step in view, as the Layers page looks at it."""

    context: Context

    @cached_property
    def forwards(self) -> list[Forward]:
        """The passes that together computed every position read so far."""
        view = self.context.view
        if view is None:
            return []
        steps = self.context.generation.steps[: view.index]
        return [*(step.forward for step in steps), view.forward]

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """What the step has read, and the token that it chose."""
        view = self.context.view
        return () if view is None else (*view.forward.ids, view.choice.id)

    @property
    def total(self) -> int:
        return len(self.ids) - 1

    @cached_property
    def tokens(self) -> Sequence[Token]:
        run = self.context.generation
        return self.context.vocabulary.tokens(self.ids, len(run.prompt))

    @property
    def at(self) -> int:
        """The position in view; the last one where the link names none that exists."""
        asked = state.place().view.at
        return asked if 0 <= asked < self.total else self.total - 1

    @cached_property
    def layer(self) -> int:
        """The layer in view; else the one that does most for the next token."""
        asked = state.place().view.layer
        layers = self.context.engine.info.layers
        if 0 <= asked < layers:
            return asked
        column = self.columns.get(self.at)
        found = None if column is None else rise(column.followed_probability[:, 0])
        return layers - 1 if found is None else int(found["layer"])

    @property
    def window(self) -> tuple[int, int]:
        return window(self.at, self.total, window_width(self.context.engine.info))

    @cached_property
    def columns(self) -> Mapping[int, Column]:
        """The lens at the positions of the window, where it can be read."""
        found: dict[int, Column] = {}
        if self.no_lens is not None:
            return found
        positions = range(*self.window)
        with _Progress(self.context, "layers.reading_lens", len(positions)) as tell:
            for position in positions:
                try:
                    found[position] = self.column(position)
                except NotReady:
                    # A stored run holds the lens of a few positions only.
                    continue
                finally:
                    tell()
        return found

    @cached_property
    def no_lens(self) -> Fault | None:
        """Why the lens can be read nowhere, or ``None``."""
        try:
            self.column(self.at)
        except NotReady:
            return None
        except Fault as fault:
            return fault
        return None

    def column(self, position: int) -> Column:
        """The lens at one position, following the token that comes next in the text."""
        forward, row = owner(self.forwards, position)
        following = self.ids[position + 1]
        engine = self.context.engine
        if isinstance(engine, RecordedEngine):
            return _stored(engine, forward, row, following)
        key = (state.number(engine), forward.ids, forward.start, position, following)
        memo = _columns()
        found = memo.get(key)
        if found is None:
            found = lens_column(engine, forward, row, (following,))
            memo.put(key, found, 256 + 64 * found.ids.size + 8 * len(forward.ids))
        return found

    def distance(self) -> float | None:
        """Between the lens' last row at the last position and the model's own distribution."""
        view = self.context.view
        last = self.columns.get(self.total - 1)
        return None if view is None or last is None else distance_to_own(last, view.forward)

    def stream(self) -> Stream:
        """At the position in view, with its parts where they can be had."""
        try:
            return stream(*self.captured(self.at, INSIDE))
        except NotReady:
            return stream(*owner(self.forwards, self.at))

    def captured(self, position: int, capture: Capture) -> tuple[Forward, int]:
        """(pass, row) of a position with more kept: the run's own pass, asked to keep it.

        Where the prompt is so long that this would take too much memory, the position is read
        after all before it, which gives the same numbers up to rounding.
        """
        run, engine = self.context.generation, self.context.engine
        prompt = len(run.prompt)
        if position >= prompt:
            ids = self.ids[: position + 1]
            return engine.forward(ids, prompt_length=prompt, capture=capture), 0
        size = inside_bytes(engine.info.layers, engine.info.width, engine.info.intermediate)
        if prompt * size <= PART_BYTES or not capture.neurons:
            return engine.forward(
                self.ids[:prompt], prompt_length=prompt, capture=capture
            ), position
        ids = self.ids[: position + 1]
        return engine.forward(ids, prompt_length=max(position, 1), capture=capture), 0

    def values(self, cell: str) -> Float[np.ndarray, "layer column"] | None:
        """The quantity that the map shows in place of the lens; raises Fault."""
        if not cell:
            return None
        made = []
        positions = range(*self.window)
        with _Progress(self.context, "layers.reading_parts", len(positions)) as tell:
            for position in positions:
                if cell in ("attention", "feed_forward"):
                    made.append(_share(stream(*self.captured(position, PARTS)), cell))
                else:
                    found = stream(*owner(self.forwards, position))
                    made.append((found.size if cell == "norm" else found.cosine)[1:])
                tell()
        return np.stack(made, axis=1)


def inside_bytes(layers: int, width: int, intermediate: int) -> int:
    """What one position's stream, parts and neurons hold, 4 bytes a number."""
    return 4 * 3 * layers * (width + intermediate)


def _share(found: Stream, part: str) -> Float[np.ndarray, " layer"]:
    """What a part adds, as a share of the stream before it; NaN where parts are not told apart."""
    if found.parts is None:
        return np.full(found.change.size, np.nan)
    added: np.ndarray = getattr(found.parts, part)
    before = found.size[:-1]
    share: np.ndarray = np.divide(added, before, out=np.zeros_like(added), where=before > 0)
    return share


def _stored(engine: RecordedEngine, forward: Forward, row: int, following: int) -> Column:
    if row != len(forward.ids) - 1 - forward.start:
        raise NotReady("model_loading")
    lens = engine.lens(forward, following)
    return Column(
        ids=lens.ids,
        probabilities=lens.probabilities,
        followed=(following,),
        followed_probability=lens.followed_probability[:, None],
        followed_rank=lens.followed_rank[:, None],
    )


class _Progress:
    """A bar while something takes longer than people wait; also a point to be cancelled at."""

    def __init__(self, context: Context, key: str, count: int) -> None:
        self._text, self._count = context.t(key), count
        self._done, self._began = 0, time.monotonic()

    def __enter__(self) -> Callable[[], None]:
        self._slot = st.empty()
        return self._tell

    def _tell(self) -> None:
        # Streamlit stops an outdated script at the next touch of its state.
        st.session_state.get("place")
        self._done += 1
        if time.monotonic() - self._began > PATIENCE:
            self._slot.progress(self._done / self._count, text=self._text)

    def __exit__(self, *_: object) -> None:
        self._slot.empty()


def heard(key: str) -> Callable[[], None]:
    """The callback of the map under ``key``: what a click asks to look at."""

    def on_action() -> None:
        state.put(look(state.place(), (st.session_state.get(key) or {}).get("action")))

    return on_action


def look(place: Any, event: object) -> Any:
    """The place after a click. The browser is not trusted: nonsense changes nothing.

    Events: ``{do: "look", at?, layer?}`` and ``{do: "cell", cell}``.
    """
    if not isinstance(event, Mapping):
        return place
    view = place.view
    if event.get("do") == "cell" and event.get("cell") in ("", *CELLS):
        return replace(place, view=replace(view, cell=event["cell"]))
    if event.get("do") != "look":
        return place
    wanted = {name: event[name] for name in ("at", "layer") if name in event}
    good = all(type(v) is int and -1 <= v < 2**20 for v in wanted.values())
    return replace(place, view=replace(view, **wanted)) if wanted and good else place


def attention_scaling(context: Context, layer: int) -> float | None:
    """The factor on q·k, measured on the first token of the run alone; ``None``: not readable."""
    capture = Capture(attention=False, scores=True, layer=layer)
    try:
        first = context.engine.forward(context.generation.ids[:1], capture=capture)
    except Fault:
        return None
    if first.scores is None or first.queries is None or first.keys is None:
        return None
    q, k = first.queries[0, :, 0].astype(np.float64), first.keys[0, :, 0].astype(np.float64)
    product = (q * np.repeat(k, q.shape[0] // k.shape[0], axis=0)).sum(-1)
    head = int(np.abs(product).argmax())
    return float(first.scores[0, head, 0, 0] / product[head]) if product[head] else None
