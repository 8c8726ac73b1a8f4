"""The interface of a fault."""

from __future__ import annotations

from typing import Protocol


class Fault(Protocol):
    """A fault. Both methods run in a thread and may block. After it was healed, it may be injected again."""

    hold: float  # seconds from injection to healing

    def inject(self) -> str:
        """Inject the fault and return a short description of what was done."""

    def heal(self) -> None:
        """Undo the fault. The caller measures the recovery by requests."""
