"""Tokenizers and their tables for all readers, opened once, and without any weights."""

from __future__ import annotations

import streamlit as st

from core.bpe import Rules, rules_of
from core.models.catalog import CATALOGUE, TINY, resolve, state_on_disk
from core.models.tokenizer import fetch_tokenizer, tokenizer_folder
from core.text.opened import open_vocabulary
from core.tokens import Vocabulary
from ui import state


def vocabulary_of(name: str) -> Vocabulary:
    """The tokenizer of a model on this machine; that of a loaded model is shared with it.

    Raises Fault for a name that is no model, one that a class may not open, or one that is
    not here.
    """
    if state.store().state(name).status == "ready":
        return state.store().engine(name).vocabulary
    return _opened(name)


@st.cache_resource(max_entries=6, show_spinner=False)
def _opened(name: str) -> Vocabulary:
    return open_vocabulary(resolve(name, local=not state.IN_CLASS))


@st.cache_resource(max_entries=4, show_spinner=False)
def rules(model: str, _vocabulary: Vocabulary) -> Rules:
    """The merges or scores of ``model``, whose tokenizer is that of ``_vocabulary``."""
    return rules_of(_vocabulary.tokenizer)


def at_hand(model: str, other: str) -> list[str]:
    """Names of the tokenizers to compare: the current model's first, then those on the disk.

    The tiny one splits nearly every letter, so its bars would dwarf those of real tokenizers: it
    is offered only where there is no other.
    """
    ready = [
        entry.name
        for entry in CATALOGUE.values()
        if not entry.light and state_on_disk(entry) == "ready"
    ]
    return list(dict.fromkeys(name for name in (model, other, *(ready or [TINY.name])) if name))


def missing(name: str) -> bool:
    """Whether ``name`` is a hub model of which not even the tokenizer is here. Raises Fault."""
    entry = resolve(name, local=not state.IN_CLASS)
    return entry.kind == "hub" and tokenizer_folder(entry) is None


def fetch(name: str) -> None:
    """Fetch the tokenizer of a hub model. Raises Fault."""
    fetch_tokenizer(resolve(name, local=not state.IN_CLASS))
