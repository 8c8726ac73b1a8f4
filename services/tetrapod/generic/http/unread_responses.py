"""`UnreadResponses`: limits the memory of responses that clients do not read.

A response is written as fast as its client reads it, so that a connection buffers little (`WRITE_BUFFER` in
protocol.py). The body itself stays in memory until it is written, and so do the buffers of each connection. Their sum
is limited for each user and for the process.

- Beyond the limit, connections that have read nothing for STALLED_LONG seconds are closed. The one that has been
  stalled longest is first.
- Beyond HARD times the limit, connections are closed however long they have been stalled, in the same order.

So a slow client gets its whole response, as long as it reads at all or the limits are not exceeded. Go's server has no
such limit.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final, Protocol

log = logging.getLogger(__name__)

PROCESS_LIMIT: Final = 64 << 20
USER_LIMIT: Final = 32 << 20
HARD: Final = 4
STALLED_LONG: Final = 10.0
"""Seconds in which a client that reads at all, even on a bad network, reads at least one piece of its response."""


class LimitedConnection(Protocol):
    """The parts of a connection that `UnreadResponses` uses."""

    def unread(self) -> int:
        """Return the number of bytes of responses that are in memory because the client has not read them."""
        ...

    def user(self) -> str:
        """Return the name of the user whose request is in flight, or else of the last request's user."""
        ...

    def abort_connection(self) -> None:
        """Close the connection at once, without sending the rest of the response."""
        ...


@dataclass(slots=True)
class _Stalled:
    """A connection whose client does not read: its user, since when (time of the event loop), and its unread bytes."""

    user: str
    since: float
    size: int


class UnreadResponses:
    """The limits of response data that slow clients leave in memory, for each user and for the process.

    A connection is stalled while its write buffer is full. If the unread bytes of a user's stalled connections exceed
    `USER_LIMIT`, or those of all exceed `PROCESS_LIMIT`, connections that have been stalled for `STALLED_LONG` seconds
    are closed, longest first. Beyond `HARD` times a limit, connections that are stalled for less time are closed too.
    """

    def __init__(self) -> None:
        self._stalled: dict[LimitedConnection, _Stalled] = {}  # those that have been stalled longest first
        self._total = 0
        self._total_of_user: dict[str, int] = {}

    def stalled(self, connection: LimitedConnection, now: float) -> None:
        """Add a connection whose write buffer has become full, and close stalled ones if a limit is exceeded.

        If the connection has been added before, the start of its stall becomes `now`. The new connection can be one of
        those that are closed.

        Args:
            connection: the connection.
            now: the time of the event loop.
        """
        self.resumed(connection)
        entry = self._stalled[connection] = _Stalled(connection.user(), now, 0)
        self._resize(entry, connection.unread())
        if self._total > PROCESS_LIMIT or self._total_of_user[entry.user] > USER_LIMIT:
            self._enforce(now)

    def resumed(self, connection: LimitedConnection) -> None:
        """Remove a connection whose client has read from it, or which is closed. Do nothing if it is not stalled."""
        entry = self._stalled.pop(connection, None)
        if entry is not None:
            self._resize(entry, 0)

    def check(self, now: float) -> None:
        """Count the unread bytes of all stalled connections again, and close some if a limit is exceeded.

        It is called every second, because streams of stalled connections may go on writing.

        Args:
            now: the time of the event loop.
        """
        for connection, entry in self._stalled.items():
            self._resize(entry, connection.unread())
        self._enforce(now)

    def _resize(self, entry: _Stalled, size: int) -> None:
        change = size - entry.size
        entry.size = size
        self._total += change
        user_total = self._total_of_user.get(entry.user, 0) + change
        if user_total > 0:
            self._total_of_user[entry.user] = user_total
        else:
            self._total_of_user.pop(entry.user, None)

    def _enforce(self, now: float) -> None:
        if self._total <= PROCESS_LIMIT and max(self._total_of_user.values(), default=0) <= USER_LIMIT:
            return
        for connection, entry in list(self._stalled.items()):
            user_total = self._total_of_user.get(entry.user, 0)
            minimum = STALLED_LONG if self._total <= HARD * PROCESS_LIMIT and user_total <= HARD * USER_LIMIT else 0.0
            if (self._total > PROCESS_LIMIT or user_total > USER_LIMIT) and now - entry.since >= minimum:
                log.warning(
                    "closed a connection of %r: %d bytes unread for %.0f s",
                    entry.user[:200],
                    entry.size,
                    now - entry.since,
                )
                self.resumed(connection)
                connection.abort_connection()
