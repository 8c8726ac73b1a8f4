"""Watchers that behave like client-go's reflector: list, watch from there, resume where a watch ended, and list again
only after a 410.

With several servers, each watch is sent to the next of them and resumes where the watch of another replica ended.
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
IDLE_TIMEOUT: Final = 90.0
"""Seconds without an event or a bookmark after which a watcher closes its connection."""


class Watcher:
    """A watcher of a kind.

    Args:
        streams: begin with the state in the watch (sendInitialEvents) instead of a list.
        lasts: the timeout that each watch requests.
        since: the resource version of a list that was made before.
    """

    def __init__(
        self,
        name: str,
        kind: Kind,
        addresses: Sequence[Address],
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
        self.relists = 0 if since else -1  # the first watch is not a resumed one
        self._addresses = itertools.cycle(addresses)
        self._history = history
        self._random = random.Random(f"{seed}/{name}")
        self._streams = streams
        self._lasts = lasts
        self._lister = Client(name, addresses, history)
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
        """Read one watch to its end."""
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds={self._random.randint(*self._lasts)}"
        query += (
            f"&resourceVersion={self.reached}"
            if self.reached
            else "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        )
        watched = Watched(self.name, self.kind.name, self.reached, self._history.clock())
        self._history.watches.append(watched)
        began_with_list = not self.reached
        try:
            async with Connection(next(self._addresses)).stream(
                "GET", f"{self.kind.collection}?{query}", idle=IDLE_TIMEOUT
            ) as (
                status,
                lines,
            ):
                if status == 410:
                    watched.expired, self.reached = True, 0
                elif status == 200:
                    await self._read(watched, lines, begun=not began_with_list)
        except (NotSent, NoAnswer):
            pass
        if began_with_list and not self.reached and not watched.expired:
            self.relists -= 1  # the watch was rejected

    async def _read(self, watched: Watched, lines: AsyncIterator[bytes], begun: bool) -> None:
        async for line in lines:
            document: dict[str, Any] = json.loads(line)
            if document["type"] == "ERROR":
                if document["object"].get("code") == 410:
                    watched.expired, self.reached = True, 0
                return
            event = _event(document)
            watched.events.append(event)
            begun = begun or event.initial_end
            if begun:
                self.reached = event.seen.revision
                self._moved.set()

    async def until(self, revision: int) -> None:
        """Wait until all events up to a revision have been received."""
        while self.reached < revision:
            self._moved.clear()
            await self._moved.wait()


def _event(document: dict[str, Any]) -> Event:
    metadata = document["object"]["metadata"]
    if document["type"] == "BOOKMARK":
        initial_end = (metadata.get("annotations") or {}).get(INITIAL_END) == "true"
        return Event("BOOKMARK", "", Seen(int(metadata["resourceVersion"]), ""), initial_end)
    return Event(document["type"], metadata["name"], Seen.of(document["object"]))
