"""The interface of dialers, which connect to servers by way of a proxy, and the texts of failed connections.

The HTTP client (`proxy`) and the gRPC client (`rpc`) connect directly unless they are given a dialer. `egress` has the
dialers.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

_P = TypeVar("_P", bound=asyncio.BaseProtocol)
_REASONS: Final = {
    errno.ECONNREFUSED: "connect: connection refused",
    errno.EHOSTUNREACH: "connect: no route to host",
    errno.ENETUNREACH: "connect: network is unreachable",
    errno.ETIMEDOUT: "connect: connection timed out",
    errno.EADDRNOTAVAIL: "connect: cannot assign requested address",
    errno.ENOENT: "connect: no such file or directory",
    errno.EACCES: "connect: permission denied",
}


class DialError(OSError):
    """The error of a connection that a dialer could not establish; the text is upstream's."""


class Dialer(Protocol):
    """A function that connects to a server by way of a proxy, which also resolves the name of the server."""

    async def __call__(self, host: str, port: int) -> socket.socket:
        """Return a socket whose data reaches the server and comes from it. The caller closes it.

        Raises:
            DialError: the proxy or the server cannot be reached.
        """
        ...


def unix_socket() -> socket.socket:
    """Return a new non-blocking Unix socket.

    Raises:
        OSError: Python has no Unix sockets on this system, which is Windows.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("Unix sockets are not supported on this system")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    return connection


async def connect(
    dialer: Dialer | None,
    protocol: Callable[[], _P],
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None,
    server_name: str | None,
) -> _P:
    """Connect to a server, and return the protocol of the connection.

    Args:
        dialer: connects by way of a proxy; None to connect directly.
        protocol: creates the protocol.
        host: the name or address of the server.
        port: its port.
        tls: the TLS context; None for no TLS.
        server_name: the name that the server's certificate must have; None without TLS.

    Raises:
        DialError: the dialer failed.
        OSError: connecting or the TLS handshake failed (ssl.SSLError is one of them).
    """
    loop = asyncio.get_running_loop()
    if dialer is None:
        _, made = await loop.create_connection(protocol, host, port, ssl=tls, server_hostname=server_name)
        return made
    connected = await dialer(host, port)
    try:
        _, made = await loop.create_connection(protocol, sock=connected, ssl=tls, server_hostname=server_name)
    except BaseException:
        connected.close()
        raise
    return made


def failure_reason(error: Exception) -> str:
    """Return Go's text for the error of a system call that connects, such as `connect: connection refused`."""
    text = _REASONS.get(getattr(error, "errno", None) or 0)
    if text is None and "Connect call failed" in str(error):
        # asyncio combines the errors of several addresses into one.
        text = _REASONS[errno.ECONNREFUSED]
    return text or str(error) or type(error).__name__
