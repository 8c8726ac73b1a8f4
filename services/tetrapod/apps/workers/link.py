"""The side of a worker: it receives connections from the supervisor, and reports its state."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

from tetrapod.apps.workers import messages

log = logging.getLogger(__name__)

_MESSAGES_AT_ONCE: Final = 32
"""The maximum number of messages that are read before the event loop does other work."""
_REPORT_DELAY: Final = 0.1
"""Seconds between the arrival of a connection and a report."""
_ANSWER_TIMEOUT: Final = 1.0
"""Seconds that a worker waits for an answer of the supervisor."""


class WorkerLink:
    """The connection of a worker to its supervisor: its `Host`, and the `ConnectionSource` of its HTTP server.

    If the supervisor dies, the worker shuts down.

    Args:
        channel: the worker's end of the pair of sockets.
        address: the address of the listening socket.

    Attributes:
        signals: the signals that stop the worker. The supervisor handles SIGINT, which a terminal sends to all.
    """

    signals: Sequence[signal.Signals] = (signal.SIGTERM,)

    def __init__(self, channel: socket.socket, address: tuple[Any, ...]) -> None:
        channel.setblocking(False)
        self._server_stops = False
        self._channel = channel
        self._address = address
        self._stop: Callable[[], None] | None = None
        self._accept: Callable[[socket.socket], None] | None = None
        self._count: Callable[[], int] = int
        self._answered = asyncio.Event()
        self._ended = asyncio.Event()
        self._soon: asyncio.TimerHandle | None = None
        self._reports: asyncio.Task[None] | None = None

    @property
    def server_stops(self) -> bool:
        """Whether the whole server shuts down, not only this worker. Valid once `stopping` has returned."""
        return self._server_stops

    @property
    def address(self) -> tuple[Any, ...]:
        """The address of the listening socket, as `getsockname` returns it."""
        return self._address

    def started(self, stop: Callable[[], None]) -> None:
        """Begin to read the supervisor's messages and to report.

        Args:
            stop: called when the supervisor tells this worker to stop, or has died.
        """
        self._stop = stop
        asyncio.get_running_loop().add_reader(self._channel.fileno(), self._read)
        self._reports = asyncio.create_task(self._report(), name="worker reports")

    def open(self, accept: Callable[[socket.socket], None], count: Callable[[], int]) -> None:
        """Ask the supervisor for connections.

        Args:
            accept: called with the socket of each connection, which it serves.
            count: returns the number of open connections, which the worker reports to the supervisor.
        """
        self._accept, self._count = accept, count
        self._send(messages.LISTENING)

    async def close(self) -> None:
        """Ask the supervisor for no more connections, and receive those that it has sent."""
        self._send(messages.CLOSING)
        await self._wait(self._ended)

    def ready(self, lines: list[str]) -> None:
        """Report to the supervisor that the worker is ready, with the lines that describe the server."""
        self._send("\n".join((messages.READY.decode(), *lines)).encode()[: messages.MESSAGE_SIZE])

    async def stopping(self) -> None:
        """Report that the worker shuts down. `server_stops` is valid when this returns."""
        if not self.server_stops:
            self._send(messages.STOPPING)
            await self._wait(self._answered)

    async def _wait(self, event: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(event.wait(), _ANSWER_TIMEOUT)
        except TimeoutError:
            log.warning("the supervisor does not answer")

    async def _report(self) -> None:
        """Report the number of open connections at regular intervals, until cancelled.

        While the event loop is blocked, reports are missing, so the supervisor prefers other workers.
        """
        while True:
            self._report_connections()
            await asyncio.sleep(messages.REPORT_INTERVAL)

    def _report_soon(self) -> None:
        """Schedule a report of the open connections, unless one is scheduled, because a connection has arrived.

        The report is delayed, because most connections are short and may have ended by then.
        """
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_REPORT_DELAY, self._report_connections)

    def _report_connections(self) -> None:
        self._soon = None
        self._send(b"%s %d" % (messages.ALIVE, self._count()))

    def _send(self, message: bytes) -> None:
        try:
            self._channel.send(message)
        except OSError as error:
            log.debug("%s not sent to the supervisor: %s", message, error)

    def _read(self) -> None:
        for _ in range(_MESSAGES_AT_ONCE):
            try:
                message, descriptors, _, _ = socket.recv_fds(self._channel, messages.MESSAGE_SIZE, 1)
            except BlockingIOError:
                return
            except OSError:
                message, descriptors = b"", []
            for descriptor in descriptors:
                self._receive(socket.socket(fileno=descriptor))
            if not message:
                self._on_end()
                return
            if message in (messages.STOP, messages.RETIRE):
                self._on_stop(server_stops=message == messages.STOP)

    def _receive(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        if self._accept is None:
            connection.close()
        else:
            self._accept(connection)
            self._report_soon()

    def _on_stop(self, *, server_stops: bool) -> None:
        self._server_stops = self._server_stops or server_stops
        self._answered.set()
        if self._stop is not None:
            self._stop()

    def _on_end(self) -> None:
        """Handle that the supervisor has closed its end of the sockets: it has answered CLOSING, or has died.

        The worker then shuts down.
        """
        asyncio.get_running_loop().remove_reader(self._channel.fileno())
        if not self._ended.is_set():
            self._ended.set()
            self._on_stop(server_stops=True)
