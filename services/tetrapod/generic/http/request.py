"""The request and the responses that pass through the filter chain, and `Handler`, the type of its elements.

The HTTP server creates a `Request`; in-process delegation passes the same object on, including its user.
A handler returns a `Response`, a `StreamResponse` (watches, large lists, proxied streams) or an `UpgradeResponse`.
Errors are raised as `StatusError` and converted to responses by the outermost filter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, TypeAlias

from tetrapod.machinery.golang.query import Query
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import ANONYMOUS, UserInfo

HeaderList: TypeAlias = list[tuple[bytes, bytes]]
"""Headers with lower-case names."""
MIN_WATCH_SECONDS: Final = 1800.0
"""The minimum duration of a watch without `timeoutSeconds` (upstream: the default of --min-request-timeout)."""


class BodyReader(Protocol):
    """The body of a request, which can be read once: either as a whole or in chunks."""

    async def read(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            StatusError: 413, the body is longer than `limit` bytes; 500, it is malformed.
            ClientGone: the client disconnected before the end of the body.
        """
        ...

    async def chunk(self) -> bytes:
        """Wait for the next bytes of the body and return them; b"" at its end. Proxies use it.

        Raises:
            StatusError: 500, the body is malformed.
            ClientGone: the client disconnected before the end of the body.
        """
        ...


class ClientGone(Exception):
    """The client closed its connection before the request was read or the response was written completely."""


class AnswerBroken(Exception):
    """A failure after the response has begun, so that no error can be sent. The raiser has logged the reason.

    The server closes the connection, by which the client notices that the response is incomplete.
    """


class Auditor(Protocol):
    """The audit context of a request, to which endpoints and filters report (implemented in audit/context.py)."""

    def request_object(
        self, obj: Object, resource: GroupVersionResource, subresource: str, in_thread: bool = False
    ) -> None:
        """Record the decoded object in the body of the request.

        Call it before defaulting and admission change the object.

        Args:
            obj: the object.
            resource: its resource.
            subresource: its subresource; "" for the resource itself.
            in_thread: whether this is called in a worker thread, because encoding the object takes long.
        """
        ...

    def request_patch(self, patch: bytes | Object) -> None:
        """Record the body of a patch request: the JSON as bytes, or the decoded object of a YAML body.

        Call it in a worker thread if encoding the body takes long.
        """
        ...

    async def record_response(self, response: Response) -> None:
        """Record a response whose body is an object, before it is written."""
        ...

    def add_latency(self, layer: str, began: float, *, at_once: bool = False) -> None:
        """Add the time since `began` to the latency of a layer, which an audit annotation reports.

        Args:
            layer: a part of request processing, such as `authorization`.
            began: a time of time.monotonic().
            at_once: keep the longest time of this layer instead of the sum, because calls run concurrently.
        """
        ...

    def requested_level(self) -> str:
        """Return the header value by which the aggregator requests audit data from the peer service that it proxies to.

        It is an audit level, at most Request, and perhaps the option to omit managed fields; see `audit/peer_audit.py`.
        """
        ...

    def add_peer_data(self, data: Object) -> None:
        """Add the audit data that a peer service collected for this request.

        Args:
            data: the data, decoded from the response header that the peer service returned (`AuditContext.peer_data`).
        """
        ...


class KnownHead(Protocol):
    """The head that several requests have in common (implemented in known_heads.py).

    Attributes:
        headers: the headers.
        derived: results of functions, by the function.
    """

    headers: HeaderList
    derived: dict[Any, tuple[Any, ...]]


class Request:
    """A request in the filter chain and the endpoints. Filters add to it: user, request info, audit context, warnings.

    Attributes:
        method: the HTTP method.
        path: the path, percent-decoded, as upstream routes on it.
        raw_path: the path as the client sent it.
        query_string: the query as sent, without the question mark.
        headers: the headers, with lower-case names. Requests may share the list, so it is replaced, never changed.
        head: the results that requests with the same head share (known_heads.py); None if the head is not known.
        body: the body, which can be read once.
        user: the user; anonymous before authentication.
        info: the parsed path and query; None before the filter `with_request_info`.
        audit_id: the Audit-ID; "" before it is set.
        audit: the audit context; None if the audit policy does not select the request.
        remote: the client's address, without its port.
        scheme: `https` or `http`.
        http_version: `1.0`, `1.1` or `2.0`.
        peer_certificates: the client's certificate chain as DER, its own first; empty if TLS did not verify it.
        certificate_error: the reason why the client's certificate is not trusted; "" if it is trusted or missing.
        same_user: whether the client is a process of this process's user, connected by a Unix socket.
        received: when the request arrived, of time.monotonic().
        deadline: when the request times out, of time.monotonic(); None for long-running requests.
        min_watch_seconds: a watch without `timeoutSeconds` lasts for a random time between this and twice this.
        cancel_when_gone: whether the handler is cancelled when the client disconnects; set for reads and by proxies.
        disconnected: returns once the client has disconnected.
        upgrade: takes over the raw connection; None if that is impossible.
        warnings: the texts of Warning headers in order; see filters/warnings.py.
        annotations: the audit annotations.
        served: whether an endpoint has been reached. A request for another path than those of resources has reached one
            when it is authorized.
        excluded_seconds: seconds spent in webhooks and in flow control queues, which do not count for the SLI.
        trace_id: the id of the exported trace that the request belongs to; "" for none.
        state: data that filters pass to each other.
    """

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
        "head",
        "headers",
        "http_version",
        "info",
        "method",
        "min_watch_seconds",
        "path",
        "peer_certificates",
        "query_string",
        "raw_path",
        "received",
        "remote",
        "same_user",
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
        self.head: KnownHead | None = None
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
        self.certificate_error = ""  # the reason why the client's certificate is not trusted
        self.same_user = False  # the client is a process of this process's user, connected by a Unix socket
        self.received = time.monotonic()
        self.deadline: float | None = None  # of time.monotonic()
        # A watch without `timeoutSeconds` lasts for a random time between this and twice this.
        self.min_watch_seconds = MIN_WATCH_SECONDS
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
        """Drop the body and the callbacks that refer to the connection, after the response has been sent.

        The connection refers to the request, so the reference cycle would have to wait for the garbage collector.
        """
        self.body, self.disconnected, self.upgrade = EMPTY_BODY, _never, None

    def query(self) -> Query:
        """Return the parameters of the query string. They are parsed again only if `query_string` was replaced."""
        query = self._query
        if query is None or query.text is not self.query_string:
            query = self._query = Query(self.query_string)
        return query

    def header(self, name: bytes, default: str = "") -> str:
        """Return the value of the first header with this lower-case name, decoded as Latin-1.

        If the request does not have the header, return `default`.
        """
        for key, value in self.headers:
            if key == name:
                return value.decode("latin-1")
        return default

    def header_values(self, name: bytes) -> list[str]:
        """Return the values of all headers with this lower-case name in their order, decoded as Latin-1."""
        return [value.decode("latin-1") for key, value in self.headers if key == name]


class Hijacked(Protocol):
    """A raw connection after an upgrade. `early` are bytes that the client sent after the request.

    Nothing more is read from the connection until a protocol takes it over.
    """

    early: bytes
    transport: Any  # asyncio.Transport

    def take_over(self, protocol: asyncio.Protocol) -> None:
        """Connect `protocol` to the transport.

        Its `connection_made` is called, then `data_received` with `early` and everything that arrives later.
        """
        ...


class Response:
    """A response with a body in memory. Subclasses stream the body, or take over the connection.

    Args:
        status: the status code.
        headers: the headers with lower-case names, which are sent in their order. The HTTP server adds Content-Length
            and Date.
        body: the body.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: HeaderList, body: bytes = b"") -> None:
        self.status = status
        self.headers = headers
        self.body = body


class StreamWriter(Protocol):
    """The writer of a streamed response's body.

    `write` never blocks and has no limit: a producer must await `drain`, or check `buffered` and drop the client.
    """

    def write(self, data: bytes) -> None: ...

    def buffered(self) -> int:
        """Return the number of bytes that have been written but not yet passed to the operating system."""
        ...

    async def drain(self) -> None:
        """Wait until the client has read so much that the buffer is no longer full.

        Raises:
            ClientGone: the client has disconnected.
        """
        ...

    @property
    def closed(self) -> bool: ...

    async def wait_closed(self) -> None:
        """Wait until the client has disconnected."""
        ...


class ForwardingWriter:
    """A base class of StreamWriters that forward to another writer. Subclasses define `write`."""

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
    """A response whose body is written by a function while it is sent.

    The headers are sent at once. Then the server awaits `run` with a writer, and cancels it if the client disconnects.
    `run` may add to `trailers`, which follow a chunked response.

    Args:
        status: the HTTP status code.
        headers: the headers.
        run: writes the body to the writer with which it is called, and returns at its end.
        endless: whether the body may be ended anywhere (a watch). A stopping server then cancels `run` and completes
            the response, instead of waiting.
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
    """A response with the status 101, which takes over the connection.

    Args:
        run: called with the connection. It writes the response itself, and then uses the connection, which the server
            closes when it returns.
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
    """A request body that is already in memory, of an in-process client. `read` does not check its limit."""

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
