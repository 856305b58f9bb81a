"""From a freshly loaded model to an edited one.

An edit never touches a model that somebody uses: the weights are read from disk once more, and
changed before anyone sees them.
"""

from __future__ import annotations

from core.edits.rounding import round_weights
from core.edits.spec import ModelEdit
from core.models.loaded import LoadedModel, describe


def apply(loaded: LoadedModel, edit: ModelEdit, *, name: str) -> LoadedModel:
    """The same model, changed in place as ``edit`` says, and its facts read off it again.

    ``name`` is what it is called from now on. Raises Fault where the model has no such layer
    or head, or where the edit cannot be done here.
    """
    if edit.rounding:
        round_weights(loaded.model, edit.rounding)
    info = describe(loaded.model, name, bool(loaded.chat_template))
    return LoadedModel(loaded.model, loaded.tokenizer, loaded.chat_template, info)
