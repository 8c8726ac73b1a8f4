"""Accepts the connections of a server and passes them to its workers.

Each goes to the worker with the fewest, because the kernel distributes connections unevenly: with SO_REUSEPORT by a
hash, with a shared socket to the process that wakes up first.
"""

from __future__ import annotations

import errno
import logging
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tetrapod.apps.workers.child import Child, State
from tetrapod.generic.http.unix_sockets import remove_socket

log = logging.getLogger(__name__)

_BACKLOG: Final = 2048
_ACCEPTED_AT_ONCE: Final = 64
"""Connections that are accepted before the supervisor does other work."""
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` that leave the connection in the kernel's queue, so that the listener remains readable."""
_ACCEPT_PAUSE: Final = 1.0
"""Seconds without accepting after such an error, as in asyncio."""
_RETRY_SECONDS: Final = 0.02
"""Seconds until the next attempt, while a worker listens and none accepts connections."""


class Distributor:
    """The listeners of a server, and the connections that no worker has yet.

    Args:
        listeners: the bound sockets: that of the port, and perhaps a Unix socket.
        unix_socket: the path of the Unix socket; "" for a server at a port only.
        selector: the selector of the supervisor, which calls the data of a key that is ready.
        children: returns the workers that run.

    Attributes:
        listening: whether clients can connect.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        unix_socket: str,
        selector: selectors.BaseSelector,
        children: Callable[[], list[Child]],
    ) -> None:
        self._listeners, self._unix_socket = listeners, unix_socket
        self._selector = selector
        self._children = children
        self.listening = False
        self._accepting = False
        self._waiting: socket.socket | None = None  # accepted, while the queues of all workers are full
        self._accept_due = 0.0

    @property
    def address(self) -> tuple[Any, ...]:
        """The address of the port, as `getsockname` returns it."""
        address: tuple[Any, ...] = self._listeners[0].getsockname()
        return address

    def listen(self) -> None:
        """Begin to listen. Do nothing at later calls."""
        if not self.listening:
            for listener in self._listeners:
                listener.listen(_BACKLOG)
            self.listening = True

    def due(self, now: float) -> float | None:
        """Return when `work` has to be called next, by the monotonic clock, or None if events are enough."""
        if self.listening and not self._accepting and any(c.state >= State.LISTENING for c in self._children()):
            return max(now + _RETRY_SECONDS, self._accept_due)
        return None

    def work(self) -> None:
        """Pass on the connection that waits, and begin or stop to accept others."""
        if self._waiting is not None and self._pass_on(self._waiting):
            self._waiting = None
        self._accept_if_possible()

    def close(self) -> None:
        """Close the listeners, so that clients are rejected. Do nothing if they are closed, or were never opened."""
        if self.listening:
            self.listening = False
            self._accept_if_possible()
            for listener in self._listeners:
                listener.close()
            if self._unix_socket:
                remove_socket(self._unix_socket)

    def close_in_worker(self) -> None:
        """Close the sockets in a forked worker, which would otherwise keep connections open that others serve."""
        for listener in self._listeners:
            listener.close()
        if self._waiting is not None:
            self._waiting.close()

    def _accept_if_possible(self) -> None:
        """Accept connections while at least one worker can get one, and stop accepting otherwise.

        Connections that are not accepted wait in the kernel's queue.
        """
        possible = self.listening and self._waiting is None and any(child.accepts for child in self._children())
        possible = possible and time.monotonic() >= self._accept_due
        for listener in self._listeners:
            if possible and not self._accepting:
                self._selector.register(listener, selectors.EVENT_READ, partial(self._accept, listener))
            elif self._accepting and not possible:
                self._selector.unregister(listener)
        self._accepting = possible

    def _accept(self, listener: socket.socket) -> None:
        # The other listener may have been ready as well.
        if self._waiting is not None or time.monotonic() < self._accept_due:
            return
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connection, _ = listener.accept()
            except OSError as error:  # no connection is waiting, it was closed, or open files or memory are exhausted
                if error.errno in _EXHAUSTED:
                    log.error("Accept error: %s; retrying in %g s", error, _ACCEPT_PAUSE)
                    self._accept_due = time.monotonic() + _ACCEPT_PAUSE
                return
            if not self._pass_on(connection):
                self._waiting = connection
                return

    def _pass_on(self, connection: socket.socket) -> bool:
        """Pass a connection to the most preferred worker that takes it, and return whether any did."""
        candidates = [child for child in self._children() if child.accepts]
        if any(child.pass_on(connection) for child in sorted(candidates, key=lambda child: child.preference)):
            connection.close()
            return True
        return False
