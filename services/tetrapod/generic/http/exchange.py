"""`Exchange`: one request and its response, over HTTP/1.1 or HTTP/2.

A connection creates an exchange once the head of a request is complete, and starts `run` as the task of the request.
The subclasses write the response: `Http1Exchange` (http1_exchange.py) and `Stream` (h2/stream.py). Reading the request
body is implemented by the base class in body.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import abstractmethod
from collections.abc import Callable
from typing import Final, Protocol

from tetrapod.generic.http.body import IncomingBody
from tetrapod.generic.http.client_verification import VerificationResult
from tetrapod.generic.http.error_responses import panic_response, status_response
from tetrapod.generic.http.loop_monitor import LoopMonitor
from tetrapod.generic.http.request import (
    AnswerBroken,
    ClientGone,
    Handler,
    HeaderList,
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from tetrapod.generic.http.request_bodies import RequestBodies
from tetrapod.generic.http.unread_responses import UnreadResponses
from tetrapod.generic.scheduling.eager_tasks import start_eagerly
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import SYSTEM_MASTERS

log = logging.getLogger(__name__)

SEND_PIECE: Final = 128 << 10
"""Larger bodies are written in pieces of this many bytes, each after the client has read enough of the previous
ones.
"""


class SharedState(Protocol):
    """The state of a server that all its connections use.

    Attributes:
        handler: receives the requests.
        contended: returns whether requests compete for the event loop.
        tasks: the tasks of all requests.
        date: the current Date header line.
        closing: whether the server is shutting down: responses carry `Connection: close`.
        monitor: measures the steps of the event loop.
        unread: limits the memory of responses that clients do not read.
        bodies: limits the memory of request bodies.
    """

    handler: Handler
    contended: Callable[[], bool]
    tasks: set[asyncio.Task[None]]
    date: bytes
    closing: bool
    monitor: LoopMonitor
    unread: UnreadResponses
    bodies: RequestBodies


class ServedConnection(Protocol):
    """The part of a connection that every exchange uses."""

    @property
    def state(self) -> SharedState:
        """The state that all connections of the server share."""
        ...


class Exchange(IncomingBody):
    """One request and its response: the BodyReader of the request and the StreamWriter of a streamed response.

    `run` handles the request and sends the response; it is called once.

    Attributes:
        request: the request.
        protocol: the connection.
        task: the task of `run`, which the connection sets; None before it starts.
        head_only: whether the request is a HEAD, so that no body is sent.
        streaming: whether a StreamResponse is being written.
        endless: whether that stream may be ended anywhere, such as a watch.
        ending: whether the stream was cancelled because the server stops.
        hijacked: whether another protocol has taken over the connection.
        unsent: bytes of the response body in memory that are not written yet.
    """

    __slots__ = (
        "_gone_event",
        "_head",
        "_remaining",
        "_reserved",
        "ending",
        "endless",
        "head_only",
        "hijacked",
        "protocol",
        "request",
        "streaming",
        "task",
        "unsent",
    )

    protocol: ServedConnection

    def __init__(self, request: Request, *, keep_alive: bool) -> None:
        self.request = request
        self.keep_alive = keep_alive
        self.head_only = request.method == "HEAD"
        self.length = -1
        self.complete = False
        self.broken = ""
        self.expects_continue = False
        self.gone = False
        self.done = False
        self.hijacked = False
        self.streaming = False
        self.endless = self.ending = False
        self.unsent = 0
        """Bytes of the response body in memory that are not written yet."""
        self.task: asyncio.Task[None] | None = None
        self._chunks: list[bytes | bytearray] = []
        self._pending = 0
        self._waiter: asyncio.Future[None] | None = None
        self._gone_event: asyncio.Event | None = None
        self._head = b""  # the head of a streamed response, until it is sent
        self._remaining = -1  # remaining bytes of a streamed response with Content-Length
        self._reserved = ("", 0)  # the user and the bytes of the body for which memory is reserved

    # --- from the subclasses

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write a piece of a streamed response's body."""

    @abstractmethod
    def buffered(self) -> int:
        """Return the number of bytes that are written but not yet passed to the operating system."""

    @abstractmethod
    async def drain(self) -> None:
        """Wait until the client has read so much that writing may continue.

        For HTTP/1.1, the write buffer of the connection must be below the limit at which it pauses. For HTTP/2, at most
        64 KiB may wait for the client's windows.

        Raises:
            ClientGone: the client has closed the connection or reset the stream.
        """

    @abstractmethod
    def abort(self) -> None:
        """Break off the response, so that the client does not mistake a partial response for a complete one."""

    @abstractmethod
    def _send(self, response: Response) -> bytes:
        """Send a response whose body has at most SEND_PIECE bytes, end the exchange, and return b"".

        For a larger body, HTTP/1.1 sends nothing and returns the encoded head; HTTP/2 sends it, and returns b"".
        """

    @abstractmethod
    async def _send_any(self, response: Response) -> None:
        """Send a response of any size as fast as the client reads it, and end the exchange."""

    @abstractmethod
    def _start_stream(self, response: Response) -> None:
        """Prepare the head of a stream, which is sent with the first piece or by `_flush_head`."""

    @abstractmethod
    def _write_head(self, head: bytes) -> None:
        """Write `head`, the encoded head of a streamed response, before the first piece of its body."""

    @abstractmethod
    def _end_stream(self, trailers: HeaderList) -> None:
        """Write the end of a streamed body with these trailers, and end the exchange."""

    # --- the request body

    async def _reserve(self, size: int) -> None:
        user = self.request.user
        await self.protocol.state.bodies.reserve(user.name, size, exempt=SYSTEM_MASTERS in user.groups)
        self._reserved = (user.name, size)

    # --- from the connection

    def connect_request(self, remote: str, scheme: str, verification: VerificationResult) -> None:
        """Set the fields of the request that depend on the connection: its body, and the attributes of the client.

        Args:
            remote: the client's address, without its port.
            scheme: `http` or `https`.
            verification: the result of verifying the client certificate.
        """
        request = self.request
        request.remote = remote
        request.scheme = scheme
        request.peer_certificates, request.certificate_error, request.same_user = verification
        request.cancel_when_gone = request.method in ("GET", "HEAD")
        request.body = self
        request.disconnected = self.wait_closed

    def start(self, loop: asyncio.AbstractEventLoop, handler: Handler | None = None) -> asyncio.Task[None]:
        """Start the task that handles the request, and return it.

        Args:
            loop: the event loop of the connection.
            handler: the handler; None for that of the server.
        """
        state, request = self.protocol.state, self.request
        if handler is None:
            options = request.path == "*" and request.method == "OPTIONS"
            handler = _server_options if options else state.handler
        work = self.run(handler)
        self.task = task = start_eagerly(loop, work) if state.contended() else loop.create_task(work)
        state.tasks.add(task)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """Remove the ended task from the server's tasks, and drop the request's references to the connection."""
        self.protocol.state.tasks.discard(task)
        self.request.release_connection()

    def client_gone(self) -> None:
        """Record that the client closed the connection, and wake everything that waits for the client.

        The task is cancelled if it streams, or if the request has `cancel_when_gone`.
        """
        self.gone = True
        self._wake()
        if self._gone_event is not None:
            self._gone_event.set()
        if self.task is not None and (self.streaming or self.request.cancel_when_gone) and not self.done:
            self.task.cancel()

    def server_stops(self) -> None:
        """Close the connection after this response. An endless stream, such as a watch, is cancelled and ends now."""
        self.keep_alive = False
        if self.endless and not self.ending and self.task is not None:
            self.ending = True
            self.task.cancel()

    @property
    def closed(self) -> bool:
        """Whether the client has closed the connection."""
        return self.gone

    async def wait_closed(self) -> None:
        """Wait until the client has closed the connection."""
        if not self.gone:
            if self._gone_event is None:
                self._gone_event = asyncio.Event()
            await self._gone_event.wait()

    # --- the task

    async def run(self, handler: Handler) -> None:
        """Call `handler` with the request and send its response.

        A StatusError becomes a response with its Status, and any other exception a 500; neither is raised. The time of
        each step of the event loop is measured (loop_monitor.py).
        """
        await self.protocol.state.monitor.measured(self.request, self._answer(handler))

    async def _answer(self, handler: Handler) -> None:
        """Call the handler and send its response.

        A StatusError becomes a Status; any other exception is logged and becomes a 500.
        """
        try:
            response = await handler(self.request)
        except StatusError as error:
            response = status_response(error)
        except asyncio.CancelledError:
            self.abort()
            if self.gone:
                return
            raise
        except ClientGone:
            self.abort()
            return
        except Exception:
            log.exception("handler of %s %s failed", self.request.method, self.request.raw_path)
            response = panic_response()
        finally:
            if self._reserved[1]:
                self.protocol.state.bodies.release(*self._reserved)
        if self.hijacked or self.gone:
            return
        if type(response) is Response:
            if len(response.body) <= SEND_PIECE:
                self._send(response)
            else:
                await self._send_any(response)
        elif isinstance(response, StreamResponse):
            await self._stream(response)
        elif isinstance(response, UpgradeResponse):
            await self._upgrade(response)
        else:
            await self._send_any(response)

    async def _stream(self, response: StreamResponse) -> None:
        self._start_stream(response)
        if not self.head_only and response.status not in (204, 304):
            self.streaming, self.endless = True, response.endless
            asyncio.get_running_loop().call_soon(self._flush_head)
            monitor = self.protocol.state.monitor
            monitor.awaited -= response.endless
            try:
                await response.run(self)
            except asyncio.CancelledError:
                if not self.ending or self.gone:
                    self.abort()
                    if self.gone:
                        return
                    raise
            except (ClientGone, AnswerBroken):
                self.abort()
                return
            except Exception:
                log.exception("stream of %s %s failed", self.request.method, self.request.raw_path)
                self.abort()
                return
            finally:
                monitor.awaited += response.endless
        if self.gone:
            return
        if self._remaining > 0 and not self.head_only:
            log.error(
                "response to %s %s ended %d bytes short", self.request.method, self.request.raw_path, self._remaining
            )
            self.abort()
            return
        self._end_stream(response.trailers)

    async def _upgrade(self, response: UpgradeResponse) -> None:
        """Let `response` take over the connection, and return when it has ended. Answer with 500 if it cannot."""
        if self.request.upgrade is None:
            await self._send_any(panic_response())
            return
        hijacked = self.request.upgrade()
        try:
            await response.run(hijacked)
        except ClientGone:
            pass
        except Exception:
            log.exception("upgraded connection of %s %s failed", self.request.method, self.request.raw_path)
        finally:
            with contextlib.suppress(Exception):
                hijacked.transport.close()

    def _flush_head(self) -> None:
        """Send the head of a stream now, if it has not been sent with the first write."""
        if self._head and not self.gone:
            head, self._head = self._head, b""
            self._write_head(head)


async def _server_options(_: Request) -> Response:
    """Return an empty 200, with which Go's server answers `OPTIONS *` before any handler."""
    return Response(200, [])
