"""Connections to the members of an etcd cluster, and the choice of the endpoint in use.

Each endpoint has one channel with TLS and keepalive. An endpoint that does not answer a call in time is replaced by the
next one. If there are several endpoints, one that does not even answer an HTTP/2 ping is replaced earlier.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.dialing import Dialer
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.observability.tracing.propagation import traceparent
from tetrapod.generic.observability.tracing.spans import CLIENT, Span, current
from tetrapod.generic.rpc import Call, Channel, Code, RpcError
from tetrapod.generic.storage.backend import CannotOpen
from tetrapod.generic.storage.etcd import etcd_pb2 as pb
from tetrapod.generic.storage.etcd.endpoints import parse_endpoint
from tetrapod.generic.storage.etcd.errors import translated
from tetrapod.machinery.failure import Failure

log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 3.0
RESPONSE_TIMEOUT: Final = 1.0
"""Seconds that a call waits before the member is pinged, and seconds to wait for the ping's answer. Used only if
there are several endpoints.
"""
LARGEST_MESSAGE: Final = 2 << 20
"""The bytes of the largest request that etcd's Go client sends (defaultMaxCallSendMsgSize)."""
_OTELGRPC: Final = "go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
RELIABLE_SINCE: Final = {(3, 4): 25, (3, 5): 8}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files for TLS with etcd. They are read for each new connection, so renewed files need no restart.

    Attributes:
        ca: the CA certificates of the servers; None uses those of the system.
        cert: the client certificate; None sends none.
        key: its private key; None if it is in the file of the certificate.
    """

    ca: str | Path | None = None
    cert: str | Path | None = None
    key: str | Path | None = None

    @property
    def configured(self) -> bool:
        """Whether a file is configured."""
        return any(file is not None for file in (self.ca, self.cert, self.key))

    def load(self) -> ssl.SSLContext:
        """Return a TLS context with the files' current contents.

        Raises OSError (ssl.SSLError) if they cannot be used.
        """
        context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        if self.cert is not None:
            context.load_cert_chain(str(self.cert), None if self.key is None else str(self.key))
        context.set_alpn_protocols(["h2"])
        return context


@cache
def progress_reliable(version: str) -> bool:
    """Return whether progress notifications of this etcd version can be trusted (etcd issue 15220).

    A version that is not of the form "3.5.9" is not trusted.
    """
    try:
        major, minor, patch = (int(part) for part in version.split("-", maxsplit=1)[0].split("."))
    except ValueError:
        return False
    return (major, minor) >= (3, 6) or patch >= RELIABLE_SINCE.get((major, minor), 1 << 30)


class Connection:
    """The gRPC channel to one endpoint, and the calls of etcd's API as methods (`range`, `txn`, …).

    The calls raise `RpcError`. `version` and `cluster` (the cluster ID) are those of the member; they are empty until
    `ready` has returned.

    Args:
        url: the URL of the endpoint.
        credentials: the files for TLS. They are read at once, and OSError is raised if they cannot be used.
        on_unresponsive: called with this connection when the endpoint stops answering pings; None disables the pings,
            for a single endpoint.
        dialer: connects by way of a proxy; None to connect directly.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        on_unresponsive: Callable[[Connection], None] | None = None,
        dialer: Dialer | None = None,
    ) -> None:
        self.url = url
        endpoint = parse_endpoint(url)
        tls = credentials.load if endpoint.uses_tls(configured=credentials.configured) else None
        if tls is not None:
            tls()  # report unusable files at startup
        host, port, path = endpoint.host, endpoint.port, endpoint.path
        if on_unresponsive is None:
            self.channel = Channel(host, port, tls, path=path, dialer=dialer)
        else:
            self.channel = Channel(
                host,
                port,
                tls,
                path=path,
                response_timeout=RESPONSE_TIMEOUT,
                on_unresponsive=partial(on_unresponsive, self),
                dialer=dialer,
            )
        self._peer = {"server.address": endpoint.path or host, **({} if path else {"server.port": port})}
        self.version = ""
        self.cluster = 0
        self._checking = asyncio.Lock()
        self.range = self._unary("KV/Range", pb.RangeResponse, repeatable=True)
        self.txn = self._unary("KV/Txn", pb.TxnResponse)
        self.compact = self._unary("KV/Compact", pb.CompactionResponse)
        self.grant = self._unary("Lease/LeaseGrant", pb.LeaseGrantResponse)
        self.time_to_live = self._unary("Lease/LeaseTimeToLive", pb.LeaseTimeToLiveResponse, repeatable=True)
        self.status = self._unary("Maintenance/Status", pb.StatusResponse, repeatable=True)

    def _unary(self, method: str, response: Any, *, repeatable: bool = False) -> Callable[..., Awaitable[Any]]:
        path, parse, unary = (
            f"/etcdserverpb.{method}",
            response.FromString,
            partial(self.channel.unary, repeatable=repeatable),
        )

        async def call(request: Any, *, timeout: float) -> Any:
            message = request.SerializeToString()
            if len(message) > LARGEST_MESSAGE:
                text = f"trying to send message larger than max ({len(message)} vs. {LARGEST_MESSAGE})"
                raise RpcError(Code.RESOURCE_EXHAUSTED, text)
            if (span := current()) is not None:
                return parse(await self._traced(span, method, message, timeout, unary))
            return parse(await unary(path, message, timeout))

        return call

    async def _traced(
        self, parent: Span, method: str, message: bytes, timeout: float, unary: Callable[..., Awaitable[bytes]]
    ) -> bytes:
        """Make a call within a child span of `parent`, and send its trace context to etcd (upstream: otelgrpc).

        Args:
            parent: the span of the caller.
            method: the service and the method, such as "KV/Range".
            message: the encoded request.
            timeout: seconds.
            unary: sends the message, called with path, message, timeout and metadata.

        Raises:
            RpcError: the call failed.
        """
        with parent.child(f"etcdserverpb.{method}", CLIENT, _OTELGRPC) as span:
            span.put({"rpc.method": f"etcdserverpb.{method}", "rpc.system.name": "grpc", **self._peer})
            metadata = (("traceparent", traceparent(span)),) if isinstance(span, Span) else ()
            try:
                answer = await unary(f"/etcdserverpb.{method}", message, timeout, metadata)
            except RpcError as error:
                span.put({"rpc.response.status_code": error.code.name})
                raise
            span.put({"rpc.response.status_code": "OK"})
            return answer

    async def watch(self, metadata: tuple[tuple[str, str], ...]) -> Call:
        """Open a gRPC stream for a watch, sending `metadata` as its headers.

        Raises:
            RpcError: the endpoint cannot be reached.
        """
        return await self.channel.stream("/etcdserverpb.Watch/Watch", metadata)

    async def ready(self) -> None:
        """Connect if necessary, and read the server's version and cluster ID.

        Raises:
            Unavailable: the server cannot be reached or does not answer within three seconds.
        """
        if self.version and self.channel.ready:
            return
        async with self._checking:
            if self.version and self.channel.ready:
                return
            self.version = ""
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self.channel.connect()
                    status = await self.status(pb.StatusRequest(), timeout=CONNECT_SECONDS)
                    self.version, self.cluster = status.version, status.header.cluster_id
            except TimeoutError:
                raise Unavailable(f"etcd: {self.url} does not answer") from None
            except RpcError as error:
                raise translated(error) from error
            except (OSError, ValueError) as error:
                raise Unavailable(f"etcd: cannot connect to {self.url}: {error}") from error
        if not progress_reliable(self.version):
            log.warning(
                "etcd %s at %s sends no reliable progress notifications: consistent reads are served by etcd itself",
                self.version,
                self.url,
            )


class Endpoints:
    """The configured endpoints and the one in use. Channels are opened at first use, within the running event loop.

    Args:
        urls: the URLs; ValueError is raised if the list is empty or one is malformed.
        credentials: the files for TLS with all of them.
        dialer: connects by way of a proxy; None to connect directly.
    """

    def __init__(self, urls: list[str], credentials: Credentials, dialer: Dialer | None = None) -> None:
        if not urls:
            raise ValueError("at least one etcd endpoint is needed")
        for url in urls:
            parse_endpoint(url)
        self._urls = urls
        self._credentials = credentials
        self._dialer = dialer
        self._connections: dict[str, Connection] = {}
        self._current = 0
        self._closed = False

    async def connection(self) -> Connection:
        """Return a connection that works: the one in use, or else the next endpoint's, which is used from then on.

        Raises:
            Unavailable: no endpoint works, or the store is closed.
        """
        if self._closed:
            raise Unavailable("the store is closed")
        failure: Failure[Unavailable] | None = None
        for _ in self._urls:
            connection = self._open(self._urls[self._current])
            try:
                await connection.ready()
                self._check_cluster(connection)
            except Unavailable as error:
                failure = Failure(error)
                self.leave(connection)
            else:
                return connection
        assert failure is not None
        raise failure.error()

    async def check(self) -> None:
        """Connect to each endpoint. Ignore those that do not answer, even if none does.

        Raises:
            CannotOpen: the endpoints that answer belong to different clusters.
        """
        for url in self._urls:
            connection = self._open(url)
            with contextlib.suppress(Unavailable):
                await connection.ready()
            try:
                self._check_cluster(connection)
            except Unavailable as error:
                raise CannotOpen(f"{error}; name the members of one cluster only") from None

    def _check_cluster(self, connection: Connection) -> None:
        """Raise Unavailable if the endpoint belongs to another cluster than an endpoint contacted before.

        This prevents writes to the wrong cluster.
        """
        for other in self._connections.values():
            if other.cluster and connection.cluster and other.cluster != connection.cluster:
                raise Unavailable(
                    f"etcd: {connection.url} is of cluster {connection.cluster:x}, {other.url} of {other.cluster:x}"
                )

    def leave(self, connection: Connection) -> None:
        """Use the next endpoint from now on, because `connection` does not answer.

        Do nothing if another one is in use already.
        """
        if self._urls[self._current] == connection.url:
            self._current = (self._current + 1) % len(self._urls)

    def _on_unresponsive(self, connection: Connection) -> None:
        log.info("etcd at %s does not respond: using the next endpoint", connection.url)
        self.leave(connection)

    def _open(self, url: str) -> Connection:
        if url not in self._connections:
            self._connections[url] = Connection(
                url, self._credentials, self._on_unresponsive if len(self._urls) > 1 else None, self._dialer
            )
        return self._connections[url]

    @property
    def progress_reliable(self) -> bool:
        """Whether every member contacted so far has reliable progress notifications; False if none was contacted."""
        contacted = False
        for connection in self._connections.values():  # a loop, because each consistent read comes here
            if connection.version:
                if not progress_reliable(connection.version):
                    return False
                contacted = True
        return contacted

    async def close(self) -> None:
        """Close all channels."""
        self._closed = True
        await asyncio.gather(*(connection.channel.close() for connection in self._connections.values()))
