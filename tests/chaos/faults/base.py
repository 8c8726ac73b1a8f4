"""What a fault is."""

from __future__ import annotations

from typing import Protocol


class Fault(Protocol):
    """Both are called in a thread, and may wait. It may be injected again after it was healed."""

    hold: float  # seconds from the injection to the healing

    def inject(self) -> str:
        """What has been done, in a few words."""

    def heal(self) -> None:
        """Undo it. Whether all is well again is found out by asking."""
