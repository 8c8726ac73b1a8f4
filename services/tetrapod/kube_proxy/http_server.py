"""The HTTP servers of the proxy: their addresses."""

from __future__ import annotations

import ipaddress

from tetrapod.generic.http.request import Handler
from tetrapod.generic.http.server import HttpServer
from tetrapod.kube_proxy.interfaces import has_ipv6


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
