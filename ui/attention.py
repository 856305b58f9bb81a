"""What the Attention page shows of a run: layer, head and cell, and where its maps come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from core.engine.cost import attention_bytes
from core.engine.memory import ByteLRU
from core.faults import Fault
from core.heads import induction, last_rows, layer_map, owner, statistics, telling_head
from core.trace import Capture, Forward, Token
from core.weight import Derivation, derive
from ui import state
from ui.context import Context
from ui.figures.attention import Digest, pictures
from ui.view import OFF_CAP, View

DIGEST_BYTES: Final = 64_000_000
FURTHEST: Final = 2**20
_READ: Final = "attention_layers"
"""In a reader's session: which layers of a long text have been asked for."""


@st.cache_resource(show_spinner=False)
def _digests() -> ByteLRU[Any, Digest]:
    return ByteLRU(DIGEST_BYTES)


@st.cache_resource(show_spinner=False)
def _probes() -> ByteLRU[Any, Any]:
    return ByteLRU(4_000_000)


@dataclass(frozen=True)
class Scene:
    """The page's point of view on a run; positions and heads are those that exist."""

    context: Context
    forwards: tuple[Forward, ...]
    """Of the steps up to the one in view, the prompt's first."""
    layer: int
    head: int
    """-1: the mean of all heads."""
    at: int
    """The row in view: the position that attends."""
    key: int
    """The position attended to whose weight is worked out; -1: none."""

    pinned: bool
    """Whether the reader chose the row; else it is the last one."""
    off: tuple[tuple[int, int], ...]
    """What is switched off, as (layer, head) with head -1 for a whole layer."""
    asked: int
    """The layer that the link names, which may have no attention; else the one in view."""

    @property
    def ids(self) -> tuple[int, ...]:
        return self.forwards[-1].ids

    @property
    def prompt_length(self) -> int:
        return len(self.context.generation.prompt)

    @property
    def whole(self) -> bool:
        """Whether the run kept the maps of all layers."""
        return self.forwards[0].attention is not None

    @property
    def megabytes(self) -> float:
        """Size of one layer's maps over the prompt, in millions of bytes."""
        info = self.context.engine.info
        return attention_bytes(info, 0, self.prompt_length, layers=1) / 1e6

    @cached_property
    def windows(self) -> list[int | None]:
        """Each layer's sliding window in positions; ``None``: it sees everything before."""
        engine = self.context.engine
        try:
            return [engine.window(layer) for layer in range(engine.info.layers)]
        except Fault:
            return [None] * engine.info.layers

    @cached_property
    def closed(self) -> tuple[int, ...]:
        """The layers of a hybrid in which there is no attention to read."""
        without = self.context.engine.info.without_attention
        heard = self.forwards[0].attending
        if not self.whole or not heard:
            return without
        return tuple(n for n in range(self.context.engine.info.layers) if n not in heard)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return self.context.vocabulary.tokens(self.ids, self.prompt_length)

    def passes(self, layer: int) -> tuple[Forward, ...]:
        """The passes that hold ``layer``; of a long text it is read now, if it was not yet."""
        if self.whole:
            return self.forwards
        engine = self.context.engine
        one = Capture(layer=layer)
        return tuple(
            forward
            if forward.attention is not None
            else engine.forward(forward.ids, prompt_length=self.prompt_length, capture=one)
            for forward in self.forwards
        )

    @cached_property
    def maps(self) -> Float[np.ndarray, "head query key"] | None:
        """All heads of the layer in view; ``None`` where the architecture cannot be read."""
        return layer_map(self.passes(self.layer), self.layer)

    @cached_property
    def map(self) -> Float[np.ndarray, "query key"] | None:
        """The map in view: one head's, or the mean."""
        if self.maps is None:
            return None
        found: np.ndarray = self.maps.mean(axis=0) if self.head < 0 else self.maps[self.head]
        return found

    @property
    def last(self) -> Float[np.ndarray, "layer key"] | None:
        """What the last position reads in each layer; of a long text, in the layer in view."""
        layers = self.context.engine.info.layers
        found = last_rows(self.forwards, layers)
        if found is None and self.maps is not None:
            found = np.full((layers, len(self.ids)), np.nan, dtype=np.float32)
            found[self.layer] = self.maps[:, -1].mean(axis=0)
        return found

    def known(self) -> tuple[int, ...]:
        """The layers whose maps are at hand: all, or of a long text those asked for so far."""
        layers = [n for n in range(self.context.engine.info.layers) if n not in self.closed]
        if self.whole:
            return tuple(layers)
        text = (self.context.spec.model, self.ids[: self.prompt_length])
        read: tuple[Any, frozenset[int]] = st.session_state.get(_READ, (None, frozenset()))
        asked = (read[1] if read[0] == text else frozenset()) | {self.layer}
        st.session_state[_READ] = (text, asked)
        return tuple(layer for layer in layers if layer in asked)

    def digests(self) -> dict[int, Digest]:
        """Pictures and statistics of the known layers, from a memo that all readers share."""
        memo, found = _digests(), {}
        for layer in self.known():
            key = (state.number(self.context.engine), self.prompt_length, self.ids, layer)
            digest = memo.get(key)
            if digest is None:
                maps = self.maps if layer == self.layer else layer_map(self.passes(layer), layer)
                if maps is None:
                    continue
                digest = Digest(pictures(maps), statistics(maps, self.ids))
                memo.put(key, digest, digest.pictures.nbytes + 8 * len(self.ids) + 2_000)
            found[layer] = digest
        return found

    def derivation(self) -> Derivation | None:
        """How the weight in view came about; ``None`` when none is. Raises Fault."""
        if self.head < 0 or self.key < 0:
            return None
        there = owner(self.forwards, self.at)
        kept = Capture(attention=True, scores=True, layer=self.layer)
        forward = self.context.engine.forward(
            there.ids, prompt_length=self.prompt_length, capture=kept
        )
        return derive(forward, self.layer, self.head, self.at, self.key)


def scene(context: Context) -> Scene | None:
    """``None`` before the first step, and for a model without layers."""
    info, step = context.engine.info, context.view
    if step is None or info.layers == 0 or info.heads == 0:
        return None
    view = state.place().view
    forwards = tuple(made.forward for made in context.generation.steps[: step.index])
    forwards += (step.forward,)
    total = len(step.forward.ids)
    layer, head = min(view.layer, info.layers - 1), min(view.head, info.heads - 1)
    if layer < 0:
        layer, head = telling_head(step.forward) or (0, 0)
    asked, layer = layer, info.attending(layer)
    pinned = 0 <= view.at < total
    return Scene(
        context,
        forwards,
        layer,
        head,
        at=view.at if pinned else total - 1,
        key=view.key if view.key < total else -1,
        pinned=pinned,
        off=tuple((n, h) for n, h in view.off if n < info.layers and h < info.heads),
        asked=asked,
    )


def attributed(scene: Scene, target: int, steps: int) -> Float[np.ndarray, " token"]:
    """``Engine.attribution`` of the text in view, remembered. Raises Fault."""
    memo, engine = _probes(), scene.context.engine
    key = (state.number(engine), scene.ids, target, steps)
    found: np.ndarray | None = memo.get(key)
    if found is None:
        found = engine.attribution(scene.ids, target, steps=steps)
        memo.put(key, found, found.nbytes)
    return found


def probe(context: Context) -> Float[np.ndarray, "layer head"] | None:
    """The induction score of every head, from one pass of the model; ``None`` without one."""
    if context.recorded is not None:
        return None
    memo, own = _probes(), state.number(context.engine)
    found = memo.get(own)
    if found is None:
        try:
            found = induction(context.engine)
        except Fault:
            return None
        if found is not None:
            memo.put(own, found, found.nbytes)
    return found


def listener(key: str) -> Callable[[], None]:
    """The callback of this page's components: {do: "look", layer?, head?, at?, key?}, or
    {do: "off" | "on", layer, head} with head -1 for the whole layer, or {do: "all_on"}."""

    def on_action() -> None:
        event = (st.session_state.get(key) or {}).get("action")
        changes = wanted(event, state.place().view)
        if changes:
            state.look(**changes)

    return on_action


def wanted(event: object, view: View) -> dict[str, Any]:
    """The fields of the view that an event asks for; the browser is not trusted. Pure."""
    if not isinstance(event, Mapping):
        return {}
    do = event.get("do")
    if do == "look":
        names = ("layer", "head", "at", "key")
        return {name: event[name] for name in names if _is_place(event.get(name))}
    if do == "all_on":
        return {"off": ()}
    layer, head = event.get("layer"), event.get("head")
    if do not in ("off", "on") or not (_is_place(layer) and _is_place(head)) or layer == -1:
        return {}
    pair = (layer, head)
    if do == "on":
        return {"off": tuple(other for other in view.off if other != pair)}
    off = tuple(sorted({*view.off, pair}))
    return {"off": off} if len(off) <= OFF_CAP else {}


def _is_place(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -1 <= value < FURTHEST
