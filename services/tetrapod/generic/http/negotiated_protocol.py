"""`NegotiatedProtocol`: a connection that becomes HTTP/1.1 or HTTP/2 once it is known which of them its client speaks.

TLS negotiates it (ALPN). Over a Unix socket the client just begins with the preface of HTTP/2 (RFC 9113, 3.3).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from tetrapod.generic.http.buffered_protocol import Buffered
from tetrapod.generic.http.unix_sockets import is_same_user, is_unix
from tetrapod.generic.http2.frames import PREFACE

log = logging.getLogger(__name__)


class NegotiatedProtocol(Buffered):
    """A `Buffered` protocol that creates the HTTP/1.1 or HTTP/2 protocol behind it when the version of HTTP is known.

    Connections of other users to a Unix socket are aborted.

    Args:
        http1: makes the protocol of a connection without TLS, or whose client did not ask for `h2`.
        http2: makes the protocol of a connection whose client prefers `h2`.
    """

    def __init__(self, http1: Callable[[], Any], http2: Callable[[], Any]) -> None:
        self._http1, self._http2 = http1, http2

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if is_unix(transport):
            super().__init__(_Undecided(self, transport), of_client=True)
            if not is_same_user(transport.get_extra_info("socket")):
                log.warning("a process of another user has connected to the Unix socket: its connection is closed")
                transport.abort()  # type: ignore[attr-defined]
            return
        ssl_object = transport.get_extra_info("ssl_object")
        self.choose(transport, http2=ssl_object is not None and ssl_object.selected_alpn_protocol() == "h2")

    def choose(self, transport: asyncio.BaseTransport, *, http2: bool) -> Any:
        """Make the protocol of HTTP/2 or HTTP/1.1, connect it to `transport`, and return it.

        Args:
            transport: the transport of this connection.
            http2: whether the client speaks HTTP/2.
        """
        protocol = self._http2() if http2 else self._http1()
        del self._http1, self._http2
        super().__init__(protocol, of_client=True)
        protocol.connection_made(transport)
        return protocol


class _Undecided(asyncio.Protocol):
    """The protocol of a Unix socket's connection until its first bytes show the version of HTTP."""

    def __init__(self, connection: NegotiatedProtocol, transport: asyncio.BaseTransport) -> None:
        self._connection, self._transport = connection, transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        http2 = self._received.startswith(PREFACE)
        if http2 or not PREFACE.startswith(self._received):
            self._connection.choose(self._transport, http2=http2).data_received(self._received)
