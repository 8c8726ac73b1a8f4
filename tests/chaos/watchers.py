"""Watchers as client-go's reflector is one: list, watch from there, go on from where a watch ended, list again only when told 410.

Where there are several doors each watch is at the next of them, and goes on from where another replica's ended.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from chaos.clients import Client
from chaos.history import Event, History, Outcome, Seen, Watched
from chaos.http import Address, Connection, NoAnswer, NotSent
from chaos.kinds import Kind

INITIAL_END: Final = "k8s.io/initial-events-end"
IDLE: Final = 90.0
"""Seconds without a word, not even a bookmark, after which a watcher takes its connection for dead."""


class Watcher:
    """`streams`: begin with the state in the watch (sendInitialEvents) instead of a list. `lasts`: how long each watch is asked for.
    `since`: somebody has listed for it.
    """

    def __init__(
        self,
        name: str,
        kind: Kind,
        doors: Sequence[Address],
        history: History,
        seed: int,
        *,
        streams: bool = False,
        lasts: tuple[int, int] = (5, 20),
        since: int = 0,
    ) -> None:
        self.name = name
        self.kind = kind
        self.reached = since
        self.relists = 0 if since else -1  # the first is none
        self._doors = itertools.cycle(doors)
        self._history = history
        self._random = random.Random(f"{seed}/{name}")
        self._streams = streams
        self._lasts = lasts
        self._lister = Client(name, doors, history)
        self._moved = asyncio.Event()

    async def work(self) -> None:
        try:
            while True:
                if not self.reached:
                    self.relists += 1
                    if not self._streams and not await self._list():
                        continue
                await self._watch()
                await asyncio.sleep(self._random.uniform(0, 0.2))
        finally:
            self._lister.close()

    async def _list(self) -> bool:
        operation = await self._lister.list(self.kind)
        if operation.outcome is Outcome.DONE:
            self.reached = operation.revision
            self._moved.set()
            return True
        self.relists -= 1
        await asyncio.sleep(0.2)
        return False

    async def _watch(self) -> None:
        """One watch, to its end."""
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds={self._random.randint(*self._lasts)}"
        query += f"&resourceVersion={self.reached}" if self.reached else "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        watched = Watched(self.name, self.kind.name, self.reached, self._history.clock())
        self._history.watches.append(watched)
        began_anew = not self.reached
        try:
            async with Connection(next(self._doors)).stream("GET", f"{self.kind.collection}?{query}", idle=IDLE) as (status, lines):
                if status == 410:
                    watched.expired, self.reached = True, 0
                elif status == 200:
                    await self._read(watched, lines, begun=not began_anew)
        except (NotSent, NoAnswer):
            pass
        if began_anew and not self.reached and not watched.expired:
            self.relists -= 1  # it never began

    async def _read(self, watched: Watched, lines: AsyncIterator[bytes], begun: bool) -> None:
        async for line in lines:
            said: dict[str, Any] = json.loads(line)
            if said["type"] == "ERROR":
                if said["object"].get("code") == 410:
                    watched.expired, self.reached = True, 0
                return
            event = _event(said)
            watched.events.append(event)
            begun = begun or event.initial_end
            if begun:
                self.reached = event.seen.revision
                self._moved.set()

    async def until(self, revision: int) -> None:
        """Returns once it has been told of everything up to there."""
        while self.reached < revision:
            self._moved.clear()
            await self._moved.wait()


def _event(said: dict[str, Any]) -> Event:
    metadata = said["object"]["metadata"]
    if said["type"] == "BOOKMARK":
        initial_end = (metadata.get("annotations") or {}).get(INITIAL_END) == "true"
        return Event("BOOKMARK", "", Seen(int(metadata["resourceVersion"]), ""), initial_end)
    return Event(said["type"], metadata["name"], Seen.of(said["object"]))
