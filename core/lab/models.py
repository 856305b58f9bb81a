"""Which models an experiment of the laboratory can be done to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.engine.protocol import Engine
from core.faults import Fault

if TYPE_CHECKING:
    from core.engine.local import LocalEngine


def local(engine: Engine) -> LocalEngine:
    """The engine, if it has weights in this process. Raises Fault for tables and stored runs."""
    from core.engine.local import LocalEngine  # noqa: PLC0415 - imports torch

    if not isinstance(engine, LocalEngine):
        raise Fault("lab_needs_weights")
    return engine
