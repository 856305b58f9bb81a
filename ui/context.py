"""What a page's body is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from core.engine.protocol import Engine
from core.lens import Lens
from core.settings import RunSpec
from core.tokens import Vocabulary
from core.trace import Generation, StepTrace
from ui import state
from ui.i18n import Catalog


@dataclass(frozen=True)
class Context:
    """All that a page's body needs: words, the run, and the step in view."""

    t: Catalog
    spec: RunSpec
    engine: Engine
    generation: Generation
    view: StepTrace | None
    """The step in view with its stages in full; ``None`` before the first step."""
    recorded: str | None
    """A sentence saying where the stored run comes from, while it stands in for the model."""

    @property
    def vocabulary(self) -> Vocabulary:
        return self.engine.vocabulary

    @cached_property
    def lens(self) -> Lens | None:
        return state.lens(self.engine, self.view) if self.view else None

    def act(self, key: str) -> Callable[[], None]:
        """The callback for the "action" event of the component mounted under ``key``."""
        return state.listener(key)
