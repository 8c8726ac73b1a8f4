"""Connections to the members of an etcd cluster: one channel per endpoint, TLS, keepalive, and which of them is used now.

An endpoint that does not answer in time is left for the next one at once; one that answers nothing at all, not even a ping, before that.
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
from urllib.parse import urlsplit

from tetrapod.generic.rpc import Call, Channel, RpcError
from tetrapod.generic.storage.backend import CannotOpen
from tetrapod.generic.storage.etcd import etcd_pb2 as pb
from tetrapod.generic.storage.etcd.errors import translated
from tetrapod.generic.tracing.propagation import traceparent
from tetrapod.generic.tracing.spans import CLIENT, Span, current
from tetrapod.generic.unavailable import Unavailable

log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 3.0
PATIENCE: Final = 1.0
"""Seconds that a call waits before its member is asked whether it is there, and as long for the answer; where there are others."""
_OTELGRPC: Final = "go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
RELIABLE_SINCE: Final = {(3, 4): 25, (3, 5): 8}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files: the CA of the servers, and our certificate with its key. Renewed ones are taken up by the next connection."""

    ca: str | Path | None = None
    cert: str | Path | None = None
    key: str | Path | None = None

    def load(self) -> ssl.SSLContext:
        """Raises OSError."""
        context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        if self.cert is not None:
            context.load_cert_chain(str(self.cert), None if self.key is None else str(self.key))
        context.set_alpn_protocols(["h2"])
        return context


@cache
def progress_reliable(version: str) -> bool:
    """Whether progress notifications of this etcd can be trusted (etcd issue 15220)."""
    try:
        major, minor, patch = (int(part) for part in version.split("-", maxsplit=1)[0].split("."))
    except ValueError:
        return False
    return (major, minor) >= (3, 6) or patch >= RELIABLE_SINCE.get((major, minor), 1 << 30)


class Connection:
    """The channel to one endpoint, and the calls it offers. `on_silent` is told that it says nothing, where there are others to turn to."""

    def __init__(self, url: str, credentials: Credentials, on_silent: Callable[[Connection], None] | None = None) -> None:
        self.url = url
        scheme, host, port = _endpoint(url)
        if scheme == "https":
            credentials.load()  # what is wrong with the files is said at the start
        tls = credentials.load if scheme == "https" else None
        if on_silent is None:
            self.channel = Channel(host, port, tls)
        else:
            self.channel = Channel(host, port, tls, patience=PATIENCE, on_silent=partial(on_silent, self))
        self._peer = {"server.address": host, "server.port": port}
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
        path, parse, unary = f"/etcdserverpb.{method}", response.FromString, partial(self.channel.unary, repeatable=repeatable)

        async def call(request: Any, *, timeout: float) -> Any:
            if (span := current()) is not None:
                return parse(await self._traced(span, method, request.SerializeToString(), timeout, unary))
            return parse(await unary(path, request.SerializeToString(), timeout))

        return call

    async def _traced(self, parent: Span, method: str, message: bytes, timeout: float, unary: Callable[..., Awaitable[bytes]]) -> bytes:
        """A step of the request that is traced, and etcd is told of it (upstream: otelgrpc)."""
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
        return await self.channel.stream("/etcdserverpb.Watch/Watch", metadata)

    async def ready(self) -> None:
        """Returns once connected and the version is known; at once when it is. Raises Unavailable."""
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
            log.warning("etcd %s at %s cannot be trusted to notify progress: consistent reads go to etcd itself", self.version, self.url)


def _endpoint(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises ValueError."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"not an etcd endpoint: {url!r} (http://host:port or https://host:port)")
    return parts.scheme, parts.hostname, parts.port or 2379


class Endpoints:
    """The endpoints in order, and the one in use. Channels are opened on first use, within the running loop."""

    def __init__(self, urls: list[str], credentials: Credentials) -> None:
        if not urls:
            raise ValueError("at least one etcd endpoint is needed")
        for url in urls:
            _endpoint(url)
        self._urls = urls
        self._credentials = credentials
        self._connections: dict[str, Connection] = {}
        self._current = 0
        self._closed = False

    async def connection(self) -> Connection:
        """A connection that is up: the one in use, or the next that is. Raises Unavailable."""
        if self._closed:
            raise Unavailable("the store is closed")
        refusal: Unavailable | None = None
        for _ in self._urls:
            connection = self._open(self._urls[self._current])
            try:
                await connection.ready()
                self._check_cluster(connection)
            except Unavailable as error:
                refusal = error
                self.leave(connection)
            else:
                return connection
        assert refusal is not None
        raise refusal

    async def check(self) -> None:
        """Raises CannotOpen: endpoints that answer are of different clusters."""
        for url in self._urls:
            connection = self._open(url)
            with contextlib.suppress(Unavailable):
                await connection.ready()
            try:
                self._check_cluster(connection)
            except Unavailable as error:
                raise CannotOpen(f"--etcd-servers: {error}; name the members of one cluster only") from None

    def _check_cluster(self, connection: Connection) -> None:
        """Raises Unavailable: what is written there would not be where all else is."""
        for other in self._connections.values():
            if other.cluster and connection.cluster and other.cluster != connection.cluster:
                raise Unavailable(f"etcd: {connection.url} is of cluster {connection.cluster:x}, {other.url} of {other.cluster:x}")

    def leave(self, connection: Connection) -> None:
        """`connection` does not answer: use the next endpoint from now on."""
        if self._urls[self._current] == connection.url:
            self._current = (self._current + 1) % len(self._urls)

    def _silent(self, connection: Connection) -> None:
        log.info("etcd at %s is silent, and passed over", connection.url)
        self.leave(connection)

    def _open(self, url: str) -> Connection:
        if url not in self._connections:
            self._connections[url] = Connection(url, self._credentials, self._silent if len(self._urls) > 1 else None)
        return self._connections[url]

    @property
    def progress_reliable(self) -> bool:
        """Of every member that has been spoken to; False while none has."""
        versions = [connection.version for connection in self._connections.values() if connection.version]
        return bool(versions) and all(map(progress_reliable, versions))

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(connection.channel.close() for connection in self._connections.values()))
