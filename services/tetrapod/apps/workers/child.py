"""A worker as its supervisor sees it."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from tetrapod.apps.workers import messages

_RESPONSIVE_SECONDS: Final = 3 * messages.REPORT_INTERVAL
"""Seconds without a report after which other workers are preferred for new connections."""
_FULL_SECONDS: Final = 0.05
"""Seconds for which a worker gets no connection after its queue was full."""


class State(IntEnum):
    """The state of a worker process. Workers with a higher state are preferred for new connections.

    Workers in the states STARTING and CLOSING get none.
    """

    STARTING = 0
    CLOSING = 1
    LISTENING = 2
    RETIRING = 3
    READY = 4


class Child:
    """A worker process, as its supervisor sees it.

    Args:
        pid: the process.
        channel: the supervisor's end of the pair of sockets.

    Attributes:
        state: its state, according to its last message.
        connections: the number of its connections: that of its last report, plus those passed to it afterwards.
        heard: when it last reported, by the monotonic clock.
        ready_at: when it became ready, by the monotonic clock; None before.
    """

    def __init__(self, pid: int, channel: socket.socket) -> None:
        channel.setblocking(False)
        self.pid = pid
        self.channel = channel
        self.state = State.STARTING
        self.connections = 0
        self.heard = time.monotonic()
        self.ready_at: float | None = None
        self._full_until = 0.0

    @property
    def accepts(self) -> bool:
        """Whether the supervisor may pass connections to this worker now."""
        return self.state >= State.LISTENING and time.monotonic() >= self._full_until

    @property
    def preference(self) -> tuple[bool, int, int]:
        """The sort key of workers for the next connection, which is passed to the worker with the lowest key.

        It contains whether the worker has not reported for a while, its negated state, and its number of connections.
        """
        silent = time.monotonic() - self.heard > _RESPONSIVE_SECONDS
        return silent, -self.state, self.connections

    def pass_on(self, connection: socket.socket) -> bool:
        """Send a connection to the worker, and return whether it was sent."""
        try:
            socket.send_fds(self.channel, [messages.CONNECTION], [connection.fileno()])
        except OSError:  # its queue is full, or it has died
            self._full_until = time.monotonic() + _FULL_SECONDS
            return False
        self.connections += 1
        return True

    def read(self, handle: Callable[[Child, bytes], None]) -> bool:
        """Receive the messages that the worker has sent. Return False if it has closed its socket, else True.

        Args:
            handle: called with this object and each message.
        """
        while True:
            try:
                message = self.channel.recv(messages.MESSAGE_SIZE)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not message:
                return False
            self.heard = time.monotonic()
            if message.startswith(messages.ALIVE):
                self.connections = int(message.removeprefix(messages.ALIVE))
            handle(self, message)

    def send(self, message: bytes) -> None:
        """Send a message to the worker, or SIGTERM if the message cannot be sent."""
        try:
            self.channel.send(message)
        except OSError:
            self.kill(signal.SIGTERM)

    def end_connections(self) -> None:
        """Tell the worker that it gets no more connections."""
        try:
            self.channel.shutdown(socket.SHUT_WR)
        except OSError:
            self.kill(signal.SIGTERM)

    def kill(self, number: signal.Signals) -> None:
        """Send a signal to the worker.

        Call it only before `exit_code` has returned a number; until then its pid cannot belong to another process.
        """
        os.kill(self.pid, number)

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal, if the process has ended; None if it runs."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None
