"""`Gate`: workers pass it for each operation, and a sample holds it shut until none is in progress."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Gate:
    """A pause of all traffic."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._active = 0

    @contextlib.asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Wait until the gate is open, and keep it from being shut completely until the operation ends."""
        while not self._open.is_set():
            await self._open.wait()
        self._active += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._active -= 1
            if not self._active:
                self._idle.set()

    @contextlib.asynccontextmanager
    async def shut(self) -> AsyncIterator[None]:
        """Let no operation begin, and wait for those in progress."""
        self._open.clear()
        try:
            await self._idle.wait()
            yield
        finally:
            self._open.set()
