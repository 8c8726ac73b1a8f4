"""The HTTP servers of the proxy: their addresses, and answers that several have."""

from __future__ import annotations

import ipaddress
from typing import Final

from tetrapod.generic.http.request import Handler, Response
from tetrapod.generic.http.server import HttpServer
from tetrapod.proxy.interfaces import has_ipv6

_NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")
JSON_HEADERS: Final = ((b"content-type", b"application/json"), _NO_SNIFF)
TEXT_HEADERS: Final = ((b"content-type", b"text/plain; charset=utf-8"), _NO_SNIFF)


def not_found() -> Response:
    """Return the answer of Go's servers for an unknown path."""
    return Response(404, list(TEXT_HEADERS), b"404 page not found\n")


async def serve(address: str, handler: Handler) -> HttpServer:
    """Start a server.

    Args:
        address: `IP:port`. As in Go, 0.0.0.0 means all addresses of both families.
        handler: answers the requests.

    Raises:
        OSError: the address is not available. The text is Go's.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if has_ipv6() and ipaddress.ip_address(host).is_unspecified:
        host = "::"
    server = HttpServer(handler, host=host, port=int(port))
    try:
        await server.start()
    except OSError as error:
        raise listen_error(error, "tcp", address) from None
    return server


def listen_error(error: OSError, network: str, address: str) -> OSError:
    """Return Go's error for a server that could not listen.

    Args:
        error: the error of the server.
        network: Go's name of the kind of the address, such as `tcp4`.
        address: `IP:port`.
    """
    return OSError(f"listen {network} {address}: bind: {str(error).rpartition(': bind: ')[2]}")
