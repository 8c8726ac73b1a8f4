"""The request and the responses that pass through the filter chain, and `Handler`, the type of its elements.

The HTTP server creates a `Request`; in-process delegation passes the same object on, including its user.
A handler returns a `Response`, a `StreamResponse` (watches, large lists, proxied streams) or an `UpgradeResponse`.
Errors are raised as `StatusError` and converted to responses by the outermost filter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias

from tetrapod.machinery.golang.query import Query
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import ANONYMOUS, UserInfo

HeaderList: TypeAlias = list[tuple[bytes, bytes]]
"""Headers with lower-case names."""


class BodyReader(Protocol):
    """The body of a request, which can be read once: as a whole, or in chunks."""

    async def read(self, limit: int) -> bytes:
        """Return the whole body.

        Raises StatusError 413 beyond `limit` bytes, and ClientGone if the client disconnects.
        """
        ...

    async def chunk(self) -> bytes:
        """Return the next chunk as it arrives, b"" at the end (for proxying)."""
        ...


class ClientGone(Exception):
    """The client closed its connection in the middle of a request."""


class AnswerBroken(Exception):
    """A response that cannot be finished after it has begun; the reason is already logged.

    The connection is closed to tell the client.
    """


class Auditor(Protocol):
    """The audit context, which endpoints pass the objects of a request to (audit/context.py)."""

    def request_object(self, obj: Object, resource: GroupVersionResource, subresource: str) -> None:
        """Record the decoded object of the request, before anything changes it."""
        ...

    def request_patch(self, patch: bytes | Object) -> None:
        """Record a patch: the JSON of the body, or the object that a YAML body contains."""
        ...

    def answer(self, response: Response) -> None:
        """Record a response with an object, before it is written."""
        ...

    def took(self, layer: str, began: float, *, at_once: bool = False) -> None:
        """Add the time since `began` (of time.monotonic()) to a layer.

        With `at_once` the maximum is kept instead of the sum.
        """
        ...

    def requested_level(self) -> str:
        """Return the audit data to request from a server that the request is proxied to (audit/peer_audit.py)."""
        ...

    def take(self, data: Object) -> None:
        """Take over the audit data of another server."""
        ...


class Request:
    """A request. `path` is percent-decoded, as upstream routes on it; `raw_path` is as sent."""

    __slots__ = (
        "_query",
        "annotations",
        "audit",
        "audit_id",
        "body",
        "cancel_when_gone",
        "certificate_error",
        "deadline",
        "disconnected",
        "excluded_seconds",
        "headers",
        "http_version",
        "info",
        "method",
        "path",
        "peer_certificates",
        "query_string",
        "raw_path",
        "received",
        "remote",
        "scheme",
        "served",
        "state",
        "trace_id",
        "upgrade",
        "user",
        "warnings",
    )

    def __init__(
        self,
        method: str,
        path: str,
        *,
        raw_path: str = "",
        query_string: str = "",
        headers: HeaderList | None = None,
        body: BodyReader | None = None,
        user: UserInfo = ANONYMOUS,
    ) -> None:
        self.method = method
        self.path = path
        self.raw_path = raw_path or path
        self.query_string = query_string
        self._query: Query | None = None
        self.headers: HeaderList = headers if headers is not None else []
        self.body: BodyReader = body if body is not None else EMPTY_BODY
        self.user = user
        self.info: RequestInfo | None = None
        self.audit_id = ""
        self.audit: Auditor | None = None  # None if the audit policy does not select the request
        self.remote = ""  # the client's address, without its port
        self.scheme = "https"
        self.http_version = "1.1"
        # DER, the client's own first, as TLS verified them up to a trust anchor.
        self.peer_certificates: tuple[bytes, ...] = ()
        self.certificate_error = ""  # why the client's certificate was not trusted
        self.received = time.monotonic()
        self.deadline: float | None = None  # of time.monotonic()
        self.cancel_when_gone = False  # cancel the handler when the client disconnects; set for reads and by proxies
        self.disconnected: Callable[[], Awaitable[None]] = _never  # returns once the client has disconnected
        self.upgrade: Callable[[], Hijacked] | None = None  # takes over the raw connection; None if that is impossible
        self.warnings: list[str] = []  # texts of Warning headers, in order; see filters/warnings.py
        self.annotations: dict[str, str] = {}  # audit annotations
        self.served = False  # whether an endpoint has been reached
        # Seconds spent in webhooks and in flow control queues, which do not count for the SLI.
        self.excluded_seconds = 0.0
        self.trace_id = ""  # of the exported trace that the request belongs to
        self.state: dict[str, Any] = {}  # data that filters pass to each other

    def release_connection(self) -> None:
        """Drop the references to the connection, which refers to the request.

        Otherwise the cycle would have to wait for the garbage collector.
        """
        self.body, self.disconnected, self.upgrade = EMPTY_BODY, _never, None

    def query(self) -> Query:
        """Return the parameters of the query, parsed at the first call."""
        query = self._query
        if query is None or query.text is not self.query_string:
            query = self._query = Query(self.query_string)
        return query

    def header(self, name: bytes, default: str = "") -> str:
        """Return the first header of this (lower-case) name, decoded as Latin-1."""
        for key, value in self.headers:
            if key == name:
                return value.decode("latin-1")
        return default

    def header_values(self, name: bytes) -> list[str]:
        """Return all headers of this (lower-case) name."""
        return [value.decode("latin-1") for key, value in self.headers if key == name]


class Hijacked(Protocol):
    """A raw connection after an upgrade. Nothing is read from it until it is taken over."""

    early: bytes
    transport: Any  # asyncio.Transport

    def take_over(self, protocol: asyncio.Protocol) -> None:
        """Give the connection to `protocol`: connection_made, the early bytes, then everything that arrives."""
        ...


class Response:
    """A response. Headers are sent in their order; the HTTP server adds Content-Length and Date."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: HeaderList, body: bytes = b"") -> None:
        self.status = status
        self.headers = headers
        self.body = body


class StreamWriter(Protocol):
    """The destination of a stream. `write` never blocks: check `buffered`, or await `drain`."""

    def write(self, data: bytes) -> None: ...

    def buffered(self) -> int:
        """Return the bytes that the client has not received yet."""
        ...

    async def drain(self) -> None:
        """Wait until the client has received enough. Raises ClientGone."""
        ...

    @property
    def closed(self) -> bool: ...

    async def wait_closed(self) -> None:
        """Wait until the client has disconnected."""
        ...


class ForwardingWriter:
    """A StreamWriter that forwards to another; subclasses process what is written."""

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer

    def buffered(self) -> int:
        return self._writer.buffered()

    async def drain(self) -> None:
        await self._writer.drain()

    @property
    def closed(self) -> bool:
        return self._writer.closed

    async def wait_closed(self) -> None:
        await self._writer.wait_closed()


class StreamResponse(Response):
    """A streamed response.

    The headers are sent at once, then `run` writes until it returns; it is cancelled if the client disconnects.

    An `endless` response (a watch) may end anywhere: a stopping server cancels it instead of waiting and ends the
    response properly. `run` may add to `trailers`, which follow a chunked response.
    """

    __slots__ = ("endless", "run", "trailers")

    def __init__(
        self, status: int, headers: HeaderList, run: Callable[[StreamWriter], Awaitable[None]], *, endless: bool = False
    ) -> None:
        super().__init__(status, headers)
        self.run = run
        self.endless = endless
        self.trailers: HeaderList = []


class UpgradeResponse(Response):
    """A response that takes over the connection (101, or splicing with an upgraded backend).

    `run` owns the connection from then on.
    """

    __slots__ = ("run",)

    def __init__(self, run: Callable[[Hijacked], Awaitable[None]]) -> None:
        super().__init__(101, [])
        self.run = run


Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]


class _EmptyBody:
    async def read(self, limit: int) -> bytes:
        return b""

    async def chunk(self) -> bytes:
        return b""


class BytesBody:
    """A body that is already in memory (in-process clients)."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self, limit: int) -> bytes:
        return self._data

    async def chunk(self) -> bytes:
        data, self._data = self._data, b""
        return data


EMPTY_BODY = _EmptyBody()


async def _never() -> None:
    await asyncio.Event().wait()
