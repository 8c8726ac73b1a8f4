"""The dialer over a konnectivity proxy server with gRPC at a Unix socket, and the connections through it.

Each connection has a gRPC connection of its own, as upstream, with one call of ProxyService.Proxy. Data that the reader
of a connection does not take is limited by the call's window: the proxy server then waits too.

Upstream: k8s.io/apiserver/pkg/server/egressselector/egress_selector.go, udsGRPCConnector;
sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client, grpcTunnel
"""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import suppress
from typing import Final

from tetrapod.generic.dialing import Dialer, DialError, failure_reason
from tetrapod.generic.egress import packets
from tetrapod.generic.egress.client_metrics import (
    DIAL_FAILURES,
    ConnectionState,
    count_received,
    count_sent,
    count_stream_error,
)
from tetrapod.generic.egress.metrics import MeasuredDialer
from tetrapod.generic.egress.packets import METHOD, Packet, PacketType
from tetrapod.generic.egress.relay import relay
from tetrapod.generic.rpc import Call, Channel, ConnectionOptions, RpcError
from tetrapod.machinery.serializer.errors import DecodeError

TIMEOUT: Final = 30.0
"""Seconds to connect to the proxy server, and again for its response to a request to dial."""
_CLOSE_TIMEOUT: Final = 10.0
"""Seconds to wait for the response to a request to close (upstream: CloseTimeout)."""
_READ_TIMEOUT: Final = 10.0
"""Seconds after which a connection is closed whose reader takes no data (upstream: readTimeoutSeconds).

The proxy server sends the data of all connections to an agent in one stream, so a reader must not stop it for long.
"""
_WINDOW: Final = 256 << 10
"""Bytes of a connection that the proxy server may send before they were read."""
_FIRST_PAUSE: Final = 1.0
_PAUSE_GROWTH: Final = 1.6
"""The pause between two attempts to connect and its growth, as grpc-go's."""


def grpc_dialer(path: str, timeout: float = TIMEOUT) -> Dialer:
    """Return a dialer over the proxy server at a Unix socket.

    Args:
        path: the path of the socket. That of an abstract socket begins with "@".
        timeout: the seconds to connect to the proxy server, and again to wait for its response to a request to dial.
    """

    async def connect() -> _Tunnel:
        return await _connect(path, timeout)

    async def request(tunnel: _Tunnel, address: str) -> socket.socket:
        return await tunnel.dial(address, timeout)

    return MeasuredDialer(("grpc", "uds"), connect, request)


async def _connect(path: str, timeout: float) -> _Tunnel:
    """Connect to a proxy server, and start its call. Failed attempts are repeated, as grpc-go does.

    Raises:
        DialError: no attempt succeeded in `timeout` seconds; the text is that of the last failure.
    """
    socket_path = f"\0{path[1:]}" if path.startswith("@") else path
    channel = Channel("localhost", 0, path=socket_path, options=ConnectionOptions(_WINDOW, pings=False))
    pause, reason = _FIRST_PAUSE, ""
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    await channel.connect()
                    return _Tunnel(channel, await channel.stream(METHOD))
                except (OSError, RpcError) as error:
                    reason = error.details if isinstance(error, RpcError) else failure_reason(error)
                await asyncio.sleep(pause)
                pause *= _PAUSE_GROWTH
    except TimeoutError:
        await channel.close()
        text = f': connection error: desc = "transport: error while dialing: dial unix {path}: {reason}"'
        raise DialError(f"context deadline exceeded{text if reason else ''}") from None
    except BaseException:
        await channel.close()
        raise


class _Tunnel:
    """A call of ProxyService.Proxy, which has one connection; implements `relay.Connection`.

    Args:
        channel: the connection to the proxy server, which the tunnel closes.
        call: the call.
    """

    def __init__(self, channel: Channel, call: Call) -> None:
        self._channel, self._call = channel, call
        self._id = 0
        self._closed_by_server = False
        self._state = ConnectionState()

    async def dial(self, address: str, timeout: float) -> socket.socket:
        """Have the proxy connect to an address, and return a socket that is connected to it. The caller closes it.

        Raises:
            DialError: the proxy server reported an error or did not respond. The tunnel is then closed.
        """
        number = random.getrandbits(63) or 1
        self._state.change("dialing")
        reason, text = "context", "dial timeout, context"
        try:
            async with asyncio.timeout(timeout):
                await self._send(PacketType.DIAL_REQ, packets.dial_request(address, number))
                packet = await self._response(number)
            if packet is None:
                reason, text = "tunnelclosed", "tunnel closed"
            elif packet.type == PacketType.DIAL_CLS:
                reason, text = "dialclosed", "dial closed"
            elif packet.error:
                reason, text = "endpoint", packet.error
            else:
                self._id = packet.connection
                self._state.change("ok")
                return relay(self, _READ_TIMEOUT)
        except BaseException as error:
            if isinstance(error, TimeoutError):
                reason, text = "timeout", "dial timeout, backstop"
            DIAL_FAILURES.add((reason,))
            await self._abort(PacketType.DIAL_CLS, packets.dial_close(number))
            if not isinstance(error, TimeoutError):
                raise
            raise DialError(text) from None
        DIAL_FAILURES.add((reason,))
        await self._end()
        raise DialError(text)

    async def _response(self, number: int) -> Packet | None:
        """Return the response to the request to dial with this number; None if the call has ended.

        The result is also None if the next response is to another request: the caller then ends the call, as upstream.
        """
        while (packet := await self._next()) is not None:
            if packet.type in (PacketType.DIAL_RSP, PacketType.DIAL_CLS):
                return packet if packet.dial == number else None
        return None

    async def receive(self) -> bytes:
        """Return the next data of the server; b"" if the connection or the tunnel was closed."""
        while (packet := await self._next()) is not None:
            if packet.type == PacketType.CLOSE_RSP and packet.connection == self._id:
                self._closed_by_server = True
                break
            if packet.type == PacketType.DATA and packet.connection == self._id and packet.data:
                return packet.data
            if packet.type == PacketType.DIAL_CLS:
                break
        return b""

    async def send(self, data: bytes) -> None:
        """Send data to the server, and return once the proxy server has taken it.

        Raises:
            OSError: the tunnel is closed.
        """
        await self._send(PacketType.DATA, packets.data(self._id, data))
        if self._call.ended:
            raise OSError("tunnel closed")

    async def close(self) -> None:
        """Close the connection, wait up to 10 seconds for the proxy server's confirmation, and close the tunnel."""
        try:
            if not self._closed_by_server and not self._call.ended:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CLOSE_TIMEOUT):
                        await self._send(PacketType.CLOSE_REQ, packets.close_request(self._id))
                        while await self.receive():
                            pass
        finally:
            await self._end()

    async def _next(self) -> Packet | None:
        """Return the next packet, or None if the call has ended.

        A message that is not a packet cancels the call.
        """
        try:
            async for message in self._call:
                packet = packets.decode(message)
                count_received(packet.type_name)
                return packet
        except RpcError as error:
            count_stream_error(error.code)
        except DecodeError:
            self._call.cancel()
        return None

    async def _send(self, type_: PacketType, packet: bytes) -> None:
        count_sent(type_.name)
        self._call.send(packet)
        await self._call.sent()

    async def _abort(self, type_: PacketType, packet: bytes) -> None:
        """Send a packet without waiting until it was sent, and close the tunnel."""
        count_sent(type_.name)
        self._call.send(packet)
        await self._end()

    async def _end(self) -> None:
        self._state.end()
        await self._channel.close()
