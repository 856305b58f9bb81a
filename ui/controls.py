"""The sidebar: language, menu, model, prompt, decoding settings.

Every widget shows the reader's place and reports its change to ``ui.state``; no widget is
itself the state, so a link, a component or another page may change the same value.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import streamlit as st

from core.text.reader import repair
from ui import state
from ui.decoding_controls import decoding
from ui.figures.words import in_bytes
from ui.i18n import LANGUAGES, Catalog, plain
from ui.model_card import model_card
from ui.widgets import show, tell

ROOT: Final = Path(__file__).resolve().parent.parent
EXAMPLES: Final = Path(__file__).resolve().parent / "examples.toml"
GROUPS: Final = ((1, "inside"), (5, "decoding"), (9, "engineering"))
"""The parts of the story: (number of the first page, name)."""
PROMPT_TYPED: Final = 50_000
"""Characters that the prompt field takes; what the model can read is decided later."""


def sidebar(t: Catalog) -> None:
    """Draw the whole sidebar."""
    _language(t)
    _menu(t)
    _prompt(t)
    model_card(t)
    decoding(t)
    _cost(t)


def _language(t: Catalog) -> None:
    def changed() -> None:
        state.look(lang=st.session_state["w_lang"] or t.lang)

    st.segmented_control(
        t("frame.language"),
        list(LANGUAGES),
        key=show("w_lang", t.lang),
        format_func=lambda code: LANGUAGES.get(code, str(code)),
        on_change=changed,
        label_visibility="collapsed",
    )


@cache
def page_files() -> tuple[tuple[str, str], ...]:
    """(address, area) of the pages that exist, in the order of the story."""
    found = sorted((ROOT / "pages").glob("[0-9]*_*.py"), key=lambda p: int(p.stem.split("_")[0]))
    return tuple((f"pages/{p.name}", p.stem.split("_", 1)[1].lower()) for p in found)


def group_of(address: str) -> str:
    """The part of the story that a page belongs to, by the number that its file begins with."""
    number = int(Path(address).stem.split("_")[0])
    return next(name for first, name in reversed(GROUPS) if number >= first)


def _menu(t: Catalog) -> None:
    with st.container(key="menu"):
        st.page_link("app.py", label=t("home.title"))
        for group, pages in groupby(page_files(), lambda page: group_of(page[0])):
            st.caption(t(f"frame.group_{group}"))
            for address, area in pages:
                st.page_link(address, label=t(f"{area}.title"))


@cache
def examples() -> tuple[dict[str, str], ...]:
    """The example prompts: ``text`` and ``shows``, the key of a message."""
    with EXAMPLES.open("rb") as file:
        return tuple(tomllib.load(file)["example"])


def prompt_here(t: Catalog) -> None:
    """The prompt once more, beside the title: ``page.css`` shows it where the sidebar is folded."""
    with st.popover(t("frame.prompt"), icon=":material/edit:", key="prompt_here"):
        _prompt_field(t, "w_prompt_here", page=True)
        _examples(t, "here", page=True)


def _prompt_field(t: Catalog, key: str, *, page: bool) -> None:
    spec = state.place().spec
    # Not in every run: that would wipe out what is being typed.
    if st.session_state.get(key) != spec.prompt:
        st.session_state[key] = spec.prompt
    st.text_area(
        t("frame.prompt"),
        value=spec.prompt,
        key=key,
        max_chars=PROMPT_TYPED,
        help=t("frame.prompt_help"),
        placeholder=t("frame.prompt_placeholder"),
        on_change=_whole(page, tell(key, "prompt", repair)),
        height=90,
    )


def _whole(page: bool, changed: Callable[..., None]) -> Callable[..., None]:
    """A callback of a widget on the page, outside the sidebar, has to redraw the sidebar too."""

    def both(**changes: Any) -> None:
        changed(**changes)
        st.session_state["whole_page"] = True

    return both if page else changed


def _examples(t: Catalog, name: str, *, page: bool) -> None:
    for index, example in enumerate(examples()):
        st.button(
            example["text"].split("\n")[0],
            key=f"{name}_{index}",
            help=t(f"examples.{example['shows']}"),
            on_click=_whole(page, state.ask),
            kwargs={"prompt": example["text"]},
            width="stretch",
        )
        st.caption(t(f"examples.{example['shows']}"))


def _prompt(t: Catalog) -> None:
    spec = state.place().spec
    _prompt_field(t, "w_prompt", page=False)
    with st.popover(t("frame.examples"), width="stretch"):
        _examples(t, "example", page=False)
    if guess_chinese(spec.prompt) and spec.model == "smollm2-135m":
        st.caption(t("frame.gemma_hint"))
        st.button(
            t("frame.gemma_switch"),
            on_click=state.ask,
            kwargs={"model": "gemma3-270m"},
            key="gemma",
        )
    found = state.controls_in(spec)
    if found or spec.literal:
        shown = ", ".join(found[:3])
        st.toggle(
            t("frame.literal"),
            key=show("w_literal", spec.literal),
            help=plain(t("frame.literal_help", strings=shown)),
            on_change=tell("w_literal", "literal"),
        )
    if spec.chat or state.has_chat(spec.model):
        st.toggle(
            t("frame.chat"),
            key=show("w_chat", spec.chat),
            help=t("frame.chat_help"),
            on_change=tell("w_chat", "chat"),
        )


def guess_chinese(text: str) -> bool:
    """Whether a text has at least two Chinese characters."""
    return sum("\u4e00" <= c <= "\u9fff" for c in text) >= 2


def _cost(t: Catalog) -> None:
    found = state.cost_of(state.place().spec)
    if found is None:
        return
    tokens, cost = found
    st.caption(t("frame.cost", tokens=f"{tokens:,}", size=in_bytes(cost.total)))
    if not cost.attention_kept:
        st.caption(t("frame.cost_no_attention"))
