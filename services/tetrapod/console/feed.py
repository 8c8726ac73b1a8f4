"""Reads all panels repeatedly while browsers show them, and sends each new state to all of these browsers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

from tetrapod.console.panels import Panel
from tetrapod.console.reads import ReadError


@dataclass(frozen=True)
class State:
    """The state of a panel.

    Attributes:
        panel: its name.
        number: counts the states of all panels.
        document: what the page gets: `data` with the time `at` at which it was read (both null before the first
            success), and `error` with `status` and `message` if the latest read failed.
    """

    panel: str
    number: int
    document: dict[str, Any]


class Feed:
    """The states of all panels. They are read while there is at least one subscriber.

    Args:
        panels: the panels by name.
        interval: the seconds between two reads of a panel.
    """

    def __init__(self, panels: Mapping[str, Panel], interval: float) -> None:
        self.interval = interval
        self._panels = panels
        self._states: dict[str, State] = {}
        self._changed = asyncio.Condition()
        self._number = 0
        self._subscribers = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    async def subscribe(self) -> AsyncGenerator[list[State], None]:
        """Yield the latest states of all panels, and then each time the new ones, until the feed is closed.

        A subscriber that is slow misses states, but never the latest one.
        """
        self._subscribers += 1
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._read(name, panel)) for name, panel in self._panels.items()]
        seen = 0
        try:
            while not self._closed:
                async with self._changed:
                    while not self._closed and self._number <= seen:
                        await self._changed.wait()
                    news = sorted((s for s in self._states.values() if s.number > seen), key=lambda s: s.number)
                    seen = self._number
                yield news
        finally:
            self._subscribers -= 1
            if not self._subscribers:
                for task in self._tasks:
                    task.cancel()
                self._tasks = []

    async def close(self) -> None:
        """End all subscriptions."""
        async with self._changed:
            self._closed = True
            self._changed.notify_all()

    async def _read(self, name: str, panel: Panel) -> None:
        while True:
            known = self._states[name].document if name in self._states else {"data": None, "at": None}
            try:
                document = {"data": await panel(), "at": time.time(), "error": None}
            except ReadError as error:
                document = {**known, "error": {"status": error.status, "message": str(error)}}
            except Exception as error:  # the server may send anything
                message = f"unexpected data ({type(error).__name__}: {error})"
                document = {**known, "error": {"status": 200, "message": message}}
            async with self._changed:
                self._number += 1
                self._states[name] = State(name, self._number, document)
                self._changed.notify_all()
            await asyncio.sleep(self.interval)
