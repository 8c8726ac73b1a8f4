"""The request and the responses that pass through the filter chain, and `Handler`, the shape of every link of it.

The HTTP front makes a `Request` from an ASGI scope; in-process delegation passes the same object on, identity and all.
A handler answers with a `Response`, a `StreamResponse` (watches, large lists, proxied streams) or an `UpgradeResponse`.
Refusals are raised as `StatusError` and written by whoever stands outermost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias

from tetrapod.generic.user import ANONYMOUS, UserInfo
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.requestinfo import RequestInfo

HeaderList: TypeAlias = list[tuple[bytes, bytes]]
"""Names in lower case."""


class BodyReader(Protocol):
    """The body of a request, which is read once: whole, or piece by piece."""

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises StatusError 413 beyond `limit` bytes, ClientGone if the client vanishes."""
        ...

    async def chunk(self) -> bytes:
        """The next piece as it arrives, b"" at the end (for proxying)."""
        ...


class ClientGone(Exception):
    """The client closed its connection in the middle of a request."""


class AnswerBroken(Exception):
    """An answer that has begun cannot be finished, and the log has been told why: the connection is cut, so that the client knows."""


class Auditor(Protocol):
    """Whom endpoints tell what they decode and answer, for the request's audit events (audit/context.py)."""

    def request_object(self, obj: Object, resource: GroupVersionResource, subresource: str) -> None:
        """The object that was sent, decoded, before anybody changes it."""
        ...

    def request_patch(self, patch: bytes | Object) -> None:
        """JSON as it was sent, or what YAML comes to."""
        ...

    def answer(self, response: Response) -> None:
        """An answer with an object, before it is written."""
        ...

    def took(self, layer: str, began: float, *, at_once: bool = False) -> None:
        """A layer's share since `began`, of time.monotonic(). Several add up; of those that run `at_once` the longest counts."""
        ...

    def asks(self) -> str:
        """What a server that the request is passed on to shall find out (audit/findings.py)."""
        ...

    def take(self, found: Object) -> None:
        """The findings of another server."""
        ...


class Request:
    """One request. `path` is percent-decoded (what upstream routes on); `raw_path` is as sent."""

    __slots__ = (
        "annotations",
        "audit",
        "audit_id",
        "body",
        "cancel_when_gone",
        "deadline",
        "disconnected",
        "excused",
        "headers",
        "http_version",
        "info",
        "method",
        "path",
        "peer_certificates",
        "peer_objection",
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
        self.headers: HeaderList = headers if headers is not None else []
        self.body: BodyReader = body if body is not None else EMPTY_BODY
        self.user = user
        self.info: RequestInfo | None = None
        self.audit_id = ""
        self.audit: Auditor | None = None  # where the policy wants the request
        self.remote = ""  # the client's address, without its port
        self.scheme = "https"
        self.http_version = "1.1"
        self.peer_certificates: tuple[bytes, ...] = ()  # DER, the client's own first, as TLS verified them up to an authority
        self.peer_objection = ""  # why the certificate that the client showed is not among them
        self.received = time.monotonic()
        self.deadline: float | None = None  # of time.monotonic()
        self.cancel_when_gone = False  # cancel the handler when the client goes: set for reads, and by who proxies
        self.disconnected: Callable[[], Awaitable[None]] = _never  # returns once the client has gone
        self.upgrade: Callable[[], Hijacked] | None = None  # takes the raw connection over; None where it cannot be
        self.warnings: list[str] = []  # texts of Warning headers, in order; see filters/warnings.py
        self.annotations: dict[str, str] = {}  # audit annotations
        self.served = False  # it has come to an endpoint
        self.excused = 0.0  # seconds that webhooks and the queues of flow control took, for which we are not to blame
        self.trace_id = ""  # of the exported trace that it belongs to
        self.state: dict[str, Any] = {}  # what filters leave for each other

    def answered(self) -> None:
        """Forget the connection: it knows the request, and two that know each other wait for the collector."""
        self.body, self.disconnected, self.upgrade = EMPTY_BODY, _never, None

    def header(self, name: bytes, default: str = "") -> str:
        """The first header of this (lower-case) name, as text."""
        for key, value in self.headers:
            if key == name:
                return value.decode("latin-1")
        return default

    def header_values(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for key, value in self.headers if key == name]


class Hijacked(Protocol):
    """A raw connection after an upgrade. Nothing is read from it until somebody takes it over."""

    early: bytes
    transport: Any  # asyncio.Transport

    def take_over(self, protocol: asyncio.Protocol) -> None:
        """Give the connection to `protocol`: connection_made, the early bytes, then whatever arrives."""
        ...


class Response:
    """Headers are sent in their order; Content-Length and Date are added by who writes it."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: HeaderList, body: bytes = b"") -> None:
        self.status = status
        self.headers = headers
        self.body = body


class StreamWriter(Protocol):
    """Where a stream is written. `write` never blocks: look at `buffered`, or await `drain`."""

    def write(self, data: bytes) -> None: ...

    def buffered(self) -> int:
        """Bytes that the client has not taken yet."""
        ...

    async def drain(self) -> None:
        """Wait until the client has taken enough; raises ClientGone."""
        ...

    @property
    def closed(self) -> bool: ...

    async def wait_closed(self) -> None:
        """Returns once the client has gone."""
        ...


class ForwardingWriter:
    """A StreamWriter in front of another; subclasses do something with what is written."""

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
    """The headers go out at once, then `run` writes until it returns; it is cancelled when the client goes.

    An `endless` one (a watch) may stop anywhere: a server that stops does not wait for it, it cancels it and ends the answer well.
    `run` may add to `trailers`, which follow a chunked answer.
    """

    __slots__ = ("endless", "run", "trailers")

    def __init__(self, status: int, headers: HeaderList, run: Callable[[StreamWriter], Awaitable[None]], *, endless: bool = False) -> None:
        super().__init__(status, headers)
        self.run = run
        self.endless = endless
        self.trailers: HeaderList = []


class UpgradeResponse(Response):
    """The connection is taken over (101, or raw splicing of an upgraded backend): `run` owns it from now on."""

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
    """A body that is already here (in-process clients)."""

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
