"""The listening socket of a server, and connections that another process accepts."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Protocol


class ConnectionSource(Protocol):
    """Accepted connections that another process passes to this one, instead of a listening socket."""

    @property
    def server_stops(self) -> bool:
        """Whether the whole server shuts down, not only this process. Valid once this process begins to stop."""
        ...

    @property
    def address(self) -> tuple[Any, ...]:
        """The address of the listening socket, as `getsockname` returns it."""
        ...

    def open(self, accept: Callable[[socket.socket], None], count: Callable[[], int]) -> None:
        """Begin to receive connections.

        Args:
            accept: called with the socket of each connection, which it serves.
            count: returns the number of connections that this process has open.
        """
        ...

    async def close(self) -> None:
        """Stop receiving connections. Those that were already sent are passed to `accept` before this returns."""
        ...


def bind(host: str, port: int, *, share_port: bool = False, only_ipv6: bool = False) -> socket.socket:
    """Return a non-blocking TCP socket that is bound to an address, and does not listen yet.

    Args:
        host: the IP address.
        port: the port; 0 for one that the kernel chooses.
        share_port: whether other sockets may listen on the same address and port, if they allow it too.
        only_ipv6: whether connections to IPv4 addresses are excluded if the address is `::`.

    Raises:
        OSError: the address is not available. The text is Go's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if share_port:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family is socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_ipv6)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        address = f"[{host}]:{port}" if family is socket.AF_INET6 else f"{host}:{port}"
        reason = (error.strerror or str(error)).lower()
        raise OSError(
            f"failed to create listener: failed to listen on {address}: listen tcp {address}: bind: {reason}"
        ) from None
    listener.setblocking(False)
    return listener
