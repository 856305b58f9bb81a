"""What was done to a model's weights, in a reader's words."""

from __future__ import annotations

from core.edits.spec import ModelEdit, Packing, Rounding, Zeros, parse_edit, split
from core.faults import Fault
from core.models.catalog import title_of
from ui.i18n import Catalog


def edit_words(t: Catalog, edit: ModelEdit | str) -> str:
    """“20 % of the neurons taken out · 4 bits, groups of 64”. Raises Fault for what is no edit."""
    found = parse_edit(edit) if isinstance(edit, str) else edit
    parts = []
    if found.layers:
        numbers = ", ".join(str(layer + 1) for layer in found.layers)
        parts.append(t("lab.edit_layers", count=len(found.layers), layers=numbers))
    if found.groups:
        parts.append(t("lab.edit_groups", count=found.groups))
    if found.heads:
        numbers = ", ".join(f"{layer + 1}.{head + 1}" for layer, head in found.heads[:8])
        more = "" if len(found.heads) <= 8 else " …"
        parts.append(t("lab.edit_heads", count=len(found.heads), heads=numbers + more))
    if found.neurons:
        parts.append(t("lab.edit_neurons", percent=_of(found.neurons)))
    if found.zeros:
        parts.append(_zeros(t, found.zeros))
    if found.rounding:
        parts.append(_rounding(t, found.rounding))
    if found.packing:
        parts.append(_packing(t, found.packing))
    return " · ".join(parts)


def model_words(t: Catalog, reference: str) -> str:
    """A model and what was done to it. Never raises: a name that is no model stays as it is."""
    name, edit = split(reference)
    try:
        words = edit_words(t, edit)
    except Fault:
        return reference
    return f"{title_of(name)} · {words}" if words else title_of(name)


def _of(share: float) -> str:
    return f"{100 * share:.4g} %"


def _zeros(t: Catalog, zeros: Zeros) -> str:
    method = t(f"lab.method_{zeros.method}")
    if zeros.two_of_four:
        return t("lab.edit_two_of_four", method=method)
    return t("lab.edit_zeros", percent=_of(zeros.share), method=method)


def _rounding(t: Catalog, rounding: Rounding) -> str:
    grid = rounding.grid
    span = t(f"lab.span_{grid.span}", group=grid.group)
    said = t("lab.edit_bits", bits=grid.bits, span=span)
    if not grid.symmetric:
        said += t("lab.edit_asymmetric")
    return said + (t("lab.edit_head") if rounding.head else "")


def _packing(t: Catalog, packing: Packing) -> str:
    said = t(f"lab.storage_{packing.storage}", group=packing.group)
    return said + (t("lab.edit_head") if packing.head else "")
