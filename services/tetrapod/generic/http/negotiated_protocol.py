"""`NegotiatedProtocol`: a connection that becomes HTTP/1.1 or HTTP/2 once TLS has negotiated it (ALPN)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tetrapod.generic.http.buffered_protocol import Buffered


class NegotiatedProtocol(Buffered):
    """A `Buffered` protocol that creates the HTTP/1.1 or HTTP/2 protocol behind it when the TLS handshake is complete.

    Args:
        http1: makes the protocol of a connection without TLS, or whose client did not ask for `h2`.
        http2: makes the protocol of a connection whose client prefers `h2`.
    """

    def __init__(self, http1: Callable[[], Any], http2: Callable[[], Any]) -> None:
        self._http1, self._http2 = http1, http2

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        ssl_object = transport.get_extra_info("ssl_object")
        negotiated = ssl_object.selected_alpn_protocol() if ssl_object is not None else None
        protocol = self._http2() if negotiated == "h2" else self._http1()
        del self._http1, self._http2
        super().__init__(protocol)
        protocol.connection_made(transport)
