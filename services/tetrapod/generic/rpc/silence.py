"""`Silence`: whether the server at the other end is there, asked by a ping once it has said nothing for a while.

Two want to know. Whoever has calls open, after KEEPALIVE: that is gRPC's keepalive (upstream's store: 30 s, and 10 s for the answer;
apiserver/pkg/storage/storagebackend/factory/etcd3.go). And a call that waits longer than `patience`, where another server may be turned to:
one that does not even answer a ping is passed over at once, though nobody says that it is dead.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

KEEPALIVE: Final = 10.0
KEEPALIVE_TIMEOUT: Final = 5.0
PING_INTERVAL: Final = 5.5
"""etcd ends a connection that pings more often than every 5 s (its --grpc-keepalive-min-time)."""
_GRACE: Final = 0.05
"""A process that was stopped itself reads first what has come meanwhile."""


class Silence:
    """`heard` and `pinged` are set by the connection with whatever comes."""

    def __init__(self, ping: Callable[[], None], busy: Callable[[], bool], lost: Callable[[], None], silent: Callable[[], None]) -> None:
        """`busy`: calls are open. `lost`: nothing will ever come. `silent`: nothing came for as long as somebody's patience."""
        self._loop = asyncio.get_running_loop()
        self._ping, self._busy, self._lost, self._silent = ping, busy, lost, silent
        self.heard = self._loop.time()
        self.pinged = False
        self._pinged_at = -math.inf
        self._keepalive: asyncio.TimerHandle | None = None
        self._doubt: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """A call is open."""
        if self._keepalive is None:
            self._keepalive = self._loop.call_later(KEEPALIVE, self._look)

    def doubt(self, patience: float) -> None:
        """A call has waited that long."""
        now = self._loop.time()
        if self._doubt is not None or now - self.heard < patience:
            return
        if not self.pinged:
            if now - self._pinged_at < PING_INTERVAL:
                return
            self._ask()
        self._doubt = self._loop.call_later(patience, self._due)

    def end(self) -> None:
        """No timer is left."""
        for timer in (self._keepalive, self._doubt):
            if timer is not None:
                timer.cancel()

    def _ask(self) -> None:
        self.pinged = True
        self._pinged_at = self._loop.time()
        self._ping()

    def _look(self) -> None:
        self._keepalive = None
        if not self._busy():
            return
        if self._loop.time() - self.heard < KEEPALIVE:
            self.watch()
            return
        self._ask()
        self._keepalive = self._loop.call_later(KEEPALIVE_TIMEOUT, self._unanswered)

    def _unanswered(self) -> None:
        self._keepalive = None
        if self.pinged:
            self._lost()
        elif self._busy():
            self.watch()

    def _due(self) -> None:
        self._doubt = self._loop.call_later(_GRACE, self._decide)

    def _decide(self) -> None:
        self._doubt = None
        if self.pinged:
            self._silent()
