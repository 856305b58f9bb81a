"""From a freshly loaded model to an edited one.

An edit never touches a model that somebody uses: the weights are read from disk once more, and
changed before anyone sees them.
"""

from __future__ import annotations

from core.edits.calibrate import reader
from core.edits.pack import pack_weights
from core.edits.remove import remove_parts
from core.edits.rounding import round_weights
from core.edits.spec import ModelEdit
from core.edits.zero import zero_weights
from core.models.loaded import LoadedModel, describe


def apply(loaded: LoadedModel, edit: ModelEdit, *, name: str) -> LoadedModel:
    """The same model, changed in place as ``edit`` says, and its facts read off it again.

    ``name`` is what it is called from now on. Raises Fault where the model has no such layer
    or head, or where the edit cannot be done here.
    """
    read = reader(loaded)
    remove_parts(loaded.model, edit, read)
    if edit.zeros:
        zero_weights(loaded.model, edit.zeros, read)
    if edit.rounding:
        round_weights(loaded.model, edit.rounding)
    if edit.packing:
        pack_weights(loaded.model, edit.packing)
    info = describe(loaded.model, name, bool(loaded.chat_template))
    return LoadedModel(loaded.model, loaded.tokenizer, loaded.chat_template, info)
