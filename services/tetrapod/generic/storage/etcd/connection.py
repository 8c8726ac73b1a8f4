"""Connections to the members of an etcd cluster: one channel per endpoint, TLS, keepalive, and which of them is used now.

gRPC's own balancing takes 60 s to leave a peer that has gone silent, so the choice is made here: an endpoint that does not answer in
time is left for the next one at once.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import grpc

from tetrapod.generic.storage.backend import Unavailable
from tetrapod.generic.storage.etcd import etcd_pb2 as pb
from tetrapod.generic.storage.etcd.errors import translated

log = logging.getLogger(__name__)

OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),  # etcd tolerates no more than one ping in 5 s
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.use_local_subchannel_pool", 1),
)
CONNECT_SECONDS: Final = 3.0
RELIABLE_SINCE: Final = {(3, 4): 25, (3, 5): 8}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files: the CA of the servers, and our certificate with its key."""

    ca: str | Path | None = None
    cert: str | Path | None = None
    key: str | Path | None = None

    def load(self) -> grpc.ChannelCredentials:
        ca, cert, key = (None if path is None else Path(path).read_bytes() for path in (self.ca, self.cert, self.key))
        return grpc.ssl_channel_credentials(ca, key, cert)


def progress_reliable(version: str) -> bool:
    """Whether progress notifications of this etcd can be trusted (etcd issue 15220)."""
    try:
        major, minor, patch = (int(part) for part in version.split("-", maxsplit=1)[0].split("."))
    except ValueError:
        return False
    return (major, minor) >= (3, 6) or patch >= RELIABLE_SINCE.get((major, minor), 1 << 30)


class Connection:
    """The channel to one endpoint, and the calls it offers."""

    def __init__(self, url: str, credentials: Credentials) -> None:
        self.url = url
        scheme, address = _endpoint(url)
        if scheme == "https":
            self.channel = grpc.aio.secure_channel(address, credentials.load(), options=OPTIONS)
        else:
            self.channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self.version = ""
        self._checking = asyncio.Lock()
        self.range = self._unary("KV/Range", pb.RangeRequest, pb.RangeResponse)
        self.txn = self._unary("KV/Txn", pb.TxnRequest, pb.TxnResponse)
        self.compact = self._unary("KV/Compact", pb.CompactionRequest, pb.CompactionResponse)
        self.grant = self._unary("Lease/LeaseGrant", pb.LeaseGrantRequest, pb.LeaseGrantResponse)
        self.status = self._unary("Maintenance/Status", pb.StatusRequest, pb.StatusResponse)
        self.watch = self.channel.stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.WatchResponse.FromString,
        )

    def _unary(self, method: str, request: Any, response: Any) -> Any:
        return self.channel.unary_unary(
            f"/etcdserverpb.{method}", request_serializer=request.SerializeToString, response_deserializer=response.FromString
        )

    async def ready(self) -> None:
        """Returns once connected and the version is known; at once when it is. Raises Unavailable."""
        if self.version and self.channel.get_state() is grpc.ChannelConnectivity.READY:
            return
        async with self._checking:
            if self.version and self.channel.get_state() is grpc.ChannelConnectivity.READY:
                return
            self.version = ""
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._connected()
                    self.version = (await self.status(pb.StatusRequest(), timeout=CONNECT_SECONDS)).version
            except TimeoutError:
                raise Unavailable(f"etcd: {self.url} does not answer") from None
            except grpc.aio.AioRpcError as error:
                raise translated(error) from error
        if not progress_reliable(self.version):
            log.warning("etcd %s at %s cannot be trusted to notify progress: consistent reads go to etcd itself", self.version, self.url)

    async def _connected(self) -> None:
        state = self.channel.get_state(try_to_connect=True)
        while state is not grpc.ChannelConnectivity.READY:
            if state in {grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN}:
                raise Unavailable(f"etcd: cannot connect to {self.url}")
            await self.channel.wait_for_state_change(state)
            state = self.channel.get_state(try_to_connect=True)


def _endpoint(url: str) -> tuple[str, str]:
    """Scheme and address. Raises ValueError."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ValueError(f"not an etcd endpoint: {url!r} (http://host:port or https://host:port)")
    return parts.scheme, parts.netloc if parts.port else f"{parts.netloc}:2379"


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
            except Unavailable as error:
                refusal = error
                self.leave(connection)
            else:
                return connection
        assert refusal is not None
        raise refusal

    def leave(self, connection: Connection) -> None:
        """`connection` does not answer: use the next endpoint from now on."""
        if self._urls[self._current] == connection.url:
            self._current = (self._current + 1) % len(self._urls)

    def _open(self, url: str) -> Connection:
        if url not in self._connections:
            self._connections[url] = Connection(url, self._credentials)
        return self._connections[url]

    @property
    def progress_reliable(self) -> bool:
        """Of every member that has been spoken to; False while none has."""
        versions = [connection.version for connection in self._connections.values() if connection.version]
        return bool(versions) and all(map(progress_reliable, versions))

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(connection.channel.close() for connection in self._connections.values()))
