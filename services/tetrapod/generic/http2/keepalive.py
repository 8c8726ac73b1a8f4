"""Detection of servers that do not respond, by pings.

It has two uses:

- Keepalive: if a connection with open calls receives nothing for a time, a ping is sent. If nothing is received within
  a timeout after that, the connection is dead.
- A client of several servers: if a call waits longer than `response_timeout`, a ping is sent. If nothing is received
  within the same time again, another server is used.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

PING_INTERVAL: Final = 5.5
"""Seconds. etcd closes connections that send pings more often than every 5 s (its --grpc-keepalive-min-time)."""
_GRACE: Final = 0.05
"""Seconds to wait before a decision, so that a process that was itself suspended first reads the data that has
arrived.
"""


class Keepalive:
    """Detects, by pings, that the server of one connection does not respond.

    The connection sets `last_received` to the time of the event loop, and `pinged` to False, whenever data arrives.
    """

    def __init__(
        self,
        ping: Callable[[], None],
        busy: Callable[[], bool],
        lost: Callable[[], None],
        unresponsive: Callable[[], None],
        idle: float,
        timeout: float,
    ) -> None:
        """Create the keepalive without timers; `watch` starts them.

        Args:
            ping: sends a ping.
            busy: returns whether calls are open.
            lost: called when the keepalive ping was not answered: the connection is dead.
            unresponsive: called when a ping of `check_alive` was not answered.
            idle: the seconds without received data after which a ping is sent; infinity for no keepalive.
            timeout: the seconds to wait for data after that ping before `lost` is called.
        """
        self._loop = asyncio.get_running_loop()
        self._ping, self._busy, self._lost, self._unresponsive = ping, busy, lost, unresponsive
        self._idle, self._timeout = idle, timeout
        self.last_received = self._loop.time()
        self.pinged = False
        self._pinged_at = -math.inf
        self._keepalive_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Start the keepalive timer, because a call is open. Do nothing if it runs, or if `idle` is infinite."""
        if self._keepalive_timer is None and self._idle < math.inf:
            self._keepalive_timer = self._loop.call_later(self._idle, self._check_idle)

    def check_alive(self, timeout: float) -> None:
        """Ping the server because a call has waited for `timeout` seconds, and call `unresponsive` if nothing arrives.

        `unresponsive` is called after `timeout` seconds more. Do nothing if data has arrived in the last `timeout`
        seconds, if a check is running, or if a ping was sent and answered within the last PING_INTERVAL.
        """
        now = self._loop.time()
        if self._response_timer is not None or now - self.last_received < timeout:
            return
        if not self.pinged:
            if now - self._pinged_at < PING_INTERVAL:
                return
            self._send_ping()
        self._response_timer = self._loop.call_later(timeout, self._await_pending_data)

    def end(self) -> None:
        """Cancel all timers, because the connection is closed."""
        for timer in (self._keepalive_timer, self._response_timer):
            if timer is not None:
                timer.cancel()

    def _send_ping(self) -> None:
        self.pinged = True
        self._pinged_at = self._loop.time()
        self._ping()

    def _check_idle(self) -> None:
        self._keepalive_timer = None
        if not self._busy():
            return
        if self._loop.time() - self.last_received < self._idle:
            self.watch()
            return
        self._send_ping()
        self._keepalive_timer = self._loop.call_later(self._timeout, self._unanswered)

    def _unanswered(self) -> None:
        self._keepalive_timer = None
        if self.pinged:
            self._lost()
        elif self._busy():
            self.watch()

    def _await_pending_data(self) -> None:
        self._response_timer = self._loop.call_later(_GRACE, self._decide)

    def _decide(self) -> None:
        self._response_timer = None
        if self.pinged:
            self._unresponsive()
