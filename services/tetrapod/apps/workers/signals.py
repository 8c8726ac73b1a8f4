"""Signals as events of a selector."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from types import FrameType
from typing import Final

_READ_SIZE: Final = 4096


class Signals:
    """Receives signals in a process without an event loop, until `restore`.

    Args:
        stopping: the signals that set `received`.
        waking: the signals that only make `descriptor` readable.

    Attributes:
        descriptor: a file descriptor that is readable when a signal has arrived.
        received: whether one of `stopping` has arrived.
    """

    def __init__(self, stopping: Sequence[signal.Signals], waking: Sequence[signal.Signals]) -> None:
        self.received = False
        self.descriptor, self._written = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._previous_descriptor = signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)
        self._previous = {number: signal.getsignal(number) for number in (*stopping, *waking)}
        for number in stopping:
            signal.signal(number, self._receive)
        for number in waking:
            signal.signal(number, _ignore)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = True

    def clear(self) -> None:
        """Read `descriptor` until it is empty."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, _READ_SIZE):
                pass

    def restore(self) -> None:
        """Restore the handlers that were set before, and close `descriptor`."""
        signal.set_wakeup_fd(self._previous_descriptor)
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        os.close(self.descriptor)
        os.close(self._written)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing. The default action of SIGCHLD does not wake up a selector."""
