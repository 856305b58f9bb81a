"""The language of the page, and the button that copies the link."""

from __future__ import annotations

from urllib.parse import urlencode

from ui.components.bundle import component
from ui.i18n import HTML_LANG, Catalog

_MOUNT = component("page_tools", js=("dom", "page_tools"), css=("base", "page_tools"))


def page_tools(t: Catalog, query: dict[str, str]) -> None:
    """Set ``<html lang>``; offer the address of ``query`` for copying."""
    strings = {key: t(f"frame.{key}") for key in ("copy_link", "copied", "copy_yourself")}
    _MOUNT(
        key="page_tools",
        data={"htmlLang": HTML_LANG[t.lang], "query": urlencode(query), "strings": strings},
    )
