"""`WriteQueue`: concurrent updates of one key write to the store one after the other.

Without it, all but one of many concurrent updates of an object would conflict and start over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class WriteQueue(Generic[T]):
    """The keys that are being written, and the updates that wait for these writes.

    An update calls `wait` while `is_writing`, computes its value, and writes it between `begin` and `end`. The end of a
    write wakes only the first update that waits. The following one is woken if that update has not begun to write in
    its next step of the event loop: its admission may call a webhook, which may itself update the same object. To wake
    all of them at once took a third of the CPU time of patches of one object by 16 clients (measured).
    """

    def __init__(self) -> None:
        self._writing: set[str] = set()
        self._waiting: dict[str, deque[asyncio.Future[T | None]]] = {}

    def is_writing(self, key: str) -> bool:
        """Return whether a write of the key is in progress."""
        return key in self._writing

    async def wait(self, key: str) -> T | None:
        """Wait for the write of a key that is in progress, and return the argument that its `end` was called with."""
        woken: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(woken)
        return await woken

    def begin(self, key: str) -> bool:
        """Record that a write of the key begins, and return True. Return False if another one is in progress."""
        if key in self._writing:
            return False
        self._writing.add(key)
        return True

    def end(self, key: str, stored: T | None) -> None:
        """Record that the write of the key has ended, and wake an update that waits for it.

        Args:
            key: the key. `begin` has returned True for it.
            stored: what the store has now, as far as it is known; None if the write failed or the key is absent.
        """
        self._writing.remove(key)
        if key in self._waiting:
            self._wake_next(key, stored)

    def _wake_next(self, key: str, stored: T | None) -> None:
        """Wake the first update that waits for a key and was not cancelled, unless another write has begun.

        While others wait, check in the next step of the event loop whether the update that was woken writes.
        """
        waiting = self._waiting.get(key)
        if waiting is None or key in self._writing:
            return
        while waiting:
            woken = waiting.popleft()
            if not woken.done():
                woken.set_result(stored)
                break
        if waiting:
            asyncio.get_running_loop().call_soon(self._wake_next, key, stored)
        else:
            del self._waiting[key]
