"""Which model, and how far it is: ready, loading, to be fetched, or failed and why."""

from __future__ import annotations

import contextlib
from typing import Final

import streamlit as st

from core.edits.spec import split
from core.engine.store import BUSY, ModelState
from core.faults import Fault
from core.models.catalog import CATALOGUE, ModelEntry, resolve, terms_text, title_of
from ui import state
from ui.edit_words import edit_words
from ui.figures.words import in_bytes
from ui.i18n import Catalog, plain
from ui.widgets import show

OWN: Final = "own"
"""The entry of the list that opens the field for another model."""
POLL: Final = 1.0
"""Seconds between two looks at a model that is on its way."""


def model_card(t: Catalog) -> None:
    """The list of models, and the state of the one that is chosen."""
    chosen = state.place().spec.model
    name, edit = split(chosen)
    listed = [*CATALOGUE, *([] if name in CATALOGUE else [name]), OWN]
    # Said in every run (see ui.widgets.show), or a browser that sees only the last of two quick
    # runs takes the first entry of the list for the reader's choice.
    shown = OWN if st.session_state.get("w_model") == OWN else name
    st.selectbox(
        t("frame.model"),
        listed,
        key=show("w_model", shown),
        format_func=lambda name: _title(t, name),
        on_change=_picked,
    )
    if st.session_state["w_model"] == OWN:
        _own(t)
    # A name that is no model gets its sentence on the page.
    with contextlib.suppress(Fault):
        if edit:
            _edited(t, name, edit)
        _state(t, chosen)


def _title(t: Catalog, name: object) -> str:
    if name == OWN:
        return t("frame.model_own")
    return title_of(str(name))


def _edited(t: Catalog, name: str, edit: str) -> None:
    """What was done to the weights, and the way back."""
    with st.container(border=True, gap="xsmall", key="edited"):
        words = edit_words(t, edit)
        st.caption(t("lab.edit", edit=words), help=t("lab.edit_help"))
        st.button(
            t("lab.edit_off"),
            key="edit_off",
            icon=":material/undo:",
            on_click=state.ask,
            kwargs={"model": name},
            width="stretch",
        )


def _picked() -> None:
    if st.session_state["w_model"] != OWN:
        state.ask(model=st.session_state["w_model"])


def _own(t: Catalog) -> None:
    def load() -> None:
        name = (st.session_state.get("w_own") or "").strip()
        if name:
            state.ask(model=name)
            st.session_state["w_model"] = name

    st.text_input(t("frame.model_own_label"), key="w_own", help=t("frame.model_own_help"))
    st.button(t("frame.model_own_load"), on_click=load, key="load_own")


def _state(t: Catalog, name: str) -> None:
    models = state.store()
    entry = resolve(name, local=not state.IN_CLASS)
    found = models.state(name)
    if found.status == "absent" and found.message == "on_disk":
        found = models.request(name)
    if found.status in BUSY:
        _busy(t, entry)
    elif found.status == "ready":
        _ready(t, entry)
    elif found.status == "failed":
        _failed(t, entry, found)
    else:
        _absent(t, entry)


def _busy(t: Catalog, entry: ModelEntry) -> None:
    @st.fragment(run_every=POLL)
    def watch() -> None:
        found = state.store().state(entry.name)
        if found.status not in BUSY:
            st.rerun(scope="app")
        key = "frame.model_loading" if found.status == "loading" else "frame.model_fetching"
        st.progress(found.progress or 0.0, text=t(key, model=plain(entry.title)))

    watch()


def _ready(t: Catalog, entry: ModelEntry) -> None:
    info = state.store().engine(entry.name).info
    st.caption(
        t(
            "frame.model_ready",
            parameters=count(info.parameters),
            memory=in_bytes(info.bytes_in_memory),
            dtype=info.dtype,
            device=info.device.upper(),
        )
    )
    if entry.source_bits:
        # Of an edited copy this is what it was made from, not what was done to it.
        edited = bool(split(entry.name)[1])
        st.caption(
            t(
                "frame.model_note_bits_before" if edited else "frame.model_note_bits",
                bits=entry.source_bits,
                download=in_bytes(entry.bytes_download or 0),
                dtype=info.dtype,
            )
        )


def _absent(t: Catalog, entry: ModelEntry) -> None:
    download = in_bytes(entry.bytes_download) if entry.bytes_download else ""
    licence = entry.licence or t("frame.licence_unknown")
    words = {"model": plain(entry.title), "download": download, "licence": licence}
    st.info(t("frame.model_absent" if download else "frame.model_absent_hub", **words))
    accepted = True
    if entry.needs_terms:
        _terms(t, entry)
        accepted = st.checkbox(t("frame.model_terms", licence=licence), key=f"terms_{entry.name}")
    st.button(
        t("frame.model_fetch", download=download).strip(),
        on_click=state.request,
        args=(entry.name,),
        kwargs={"accept_terms": accepted},
        disabled=not accepted,
        key="fetch",
        type="primary",
    )


def _terms(t: Catalog, entry: ModelEntry) -> None:
    """What has to be agreed to: in full where it comes with the project, else where it is."""
    terms = terms_text(entry)
    if terms:
        with st.expander(t("frame.model_terms_link")), st.container(height=300):
            st.text(terms)
    elif entry.licence_url:
        st.link_button(t("frame.model_terms_link"), entry.licence_url)


def _failed(t: Catalog, entry: ModelEntry, found: ModelState) -> None:
    st.error(_why(t, entry.name, found))
    st.button(
        t("frame.model_retry"),
        on_click=state.request,
        args=(entry.name,),
        kwargs={"accept_terms": True, "retry": True},
        key="retry",
    )


def _why(t: Catalog, name: str, found: ModelState) -> str:
    """Why a model could not be had."""
    reason = t.fault(found.fault) if found.fault else ""
    return t("frame.model_failed", model=plain(title_of(name)), reason=reason)


def waiting(t: Catalog, name: str) -> None:
    """Said in place of a run that nobody can compute yet; goes on by itself when it can."""
    found = state.store().state(name)
    if found.status == "failed":
        st.error(_why(t, name, found))
    else:
        st.info(t("frame.waiting_absent" if found.status == "absent" else "frame.waiting"))
    st.button(t("frame.show_recorded"), on_click=state.show_recorded, key="show_recorded")

    @st.fragment(run_every=POLL)
    def watch() -> None:
        if state.store().state(name).status == "ready":
            st.rerun(scope="app")

    watch()


def count(number: int) -> str:
    """A large count for people: 134.5M."""
    if number >= 10**9:
        return f"{number / 10**9:.1f}B"
    return f"{number / 10**6:.1f}M" if number >= 10**6 else f"{number:,}"
