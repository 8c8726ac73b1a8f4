"""Dialers over an HTTP proxy with the method CONNECT, at a TCP address with or without TLS or at a Unix socket.

Upstream: k8s.io/apiserver/pkg/server/egressselector/egress_selector.go, tunnelHTTPConnect
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from tetrapod.generic.dialing import Dialer, DialError, failure_reason, unix_socket
from tetrapod.generic.egress.metrics import MeasuredDialer
from tetrapod.generic.egress.relay import StreamConnection, relay
from tetrapod.generic.proxy.dialing import dial_error_text, server_name
from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.tls import ClientTLS, client_context

_PROTOCOL: Final = "http_connect"
_LARGEST_HEAD: Final = 1 << 20
"""Bytes that the head of a proxy's response may have (net/http: DefaultMaxHeaderBytes)."""
_END: Final = b"\r\n\r\n"


def unix_dialer(path: str) -> Dialer:
    """Return a dialer over the proxy at the Unix socket `path`. A path that begins with `@` is an abstract socket."""

    async def connect() -> socket.socket:
        return await _connect_unix(path)

    async def request(proxy: socket.socket, address: str) -> socket.socket:
        return await _request(proxy, path, address)

    return MeasuredDialer((_PROTOCOL, "uds"), connect, request)


def tcp_dialer(url: str, tls: ClientTLS | None) -> Dialer:
    """Return a dialer over the proxy at a TCP address.

    Args:
        url: the URL of the proxy, of which only the address is used.
        tls: the TLS configuration; None for plain HTTP.

    Raises:
        ValueError: the URL is invalid.
    """
    try:
        address = urlsplit(url).netloc.rpartition("@")[2]
        host, port = urlsplit(url).hostname or "", urlsplit(url).port
    except ValueError as error:
        raise ValueError(f'invalid proxy server url "{url}": {error}') from None
    endpoint = Endpoint(host, port or 0, tls)

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if port is None:
            raise DialError(f"dial tcp: address {address}: missing port in address")
        context: ssl.SSLContext | None = None
        try:
            context = client_context(tls) if tls is not None else None
            async with asyncio.timeout(endpoint.dial_timeout):
                return await asyncio.open_connection(
                    host, port, ssl=context, server_hostname=server_name(endpoint), limit=_LARGEST_HEAD
                )
        except (OSError, ValueError) as error:
            raise DialError(await dial_error_text(endpoint, error)) from error

    async def request(proxy: tuple[asyncio.StreamReader, asyncio.StreamWriter], target: str) -> socket.socket:
        reader, writer = proxy
        try:
            with _as_dial_error(address, target):
                writer.write(_head(target))
                _check(await reader.readuntil(_END), address, target)
        except BaseException:
            writer.transport.abort()
            raise
        return relay(StreamConnection(reader, writer))

    return MeasuredDialer((_PROTOCOL, "tcp"), connect, request)


async def _connect_unix(path: str) -> socket.socket:
    """Connect to the Unix socket `path`. A path that begins with `@` is an abstract socket.

    Raises:
        DialError: the connection failed.
    """
    try:
        proxy = unix_socket()
    except OSError as error:
        raise DialError(f"dial unix {path}: {error}") from error
    try:
        await asyncio.get_running_loop().sock_connect(proxy, f"\0{path[1:]}" if path.startswith("@") else path)
    except OSError as error:
        proxy.close()
        raise DialError(f"dial unix {path}: {failure_reason(error)}") from error
    except BaseException:
        proxy.close()
        raise
    return proxy


async def _request(proxy: socket.socket, proxy_address: str, target: str) -> socket.socket:
    loop, response = asyncio.get_running_loop(), b""
    try:
        with _as_dial_error(proxy_address, target):
            await loop.sock_sendall(proxy, _head(target))
            while _END not in response:
                if len(response) > _LARGEST_HEAD or not (data := await loop.sock_recv(proxy, 4096)):
                    raise EOFError
                response += data
            _check(response, proxy_address, target)
    except BaseException:
        proxy.close()
        raise
    return proxy


def _head(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def _check(response: bytes, proxy_address: str, target: str) -> None:
    """Check that the proxy has connected to the server: its response is a 200, after which it has sent nothing.

    Args:
        response: the received bytes, with the whole head.
        proxy_address: the address of the proxy, for the error text.
        target: host:port of the server, for the error text.

    Raises:
        DialError: the response is not 200, or data of the server follows its head.
        OSError: the response is malformed.
    """
    head, _, rest = response.partition(_END)
    version, _, status = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    if not version.startswith("HTTP/") or not status[:3].isdigit():
        raise OSError(f'malformed HTTP response "{version}"')
    if status[:3] != "200":
        raise DialError(f"proxy error from {proxy_address} while dialing {target}, code {status[:3]}: {status}")
    if rest:
        raise DialError(f'unexpected {len(rest)} bytes of buffered data from CONNECT proxy "{proxy_address}"')


@contextmanager
def _as_dial_error(proxy_address: str, target: str) -> Iterator[None]:
    """Raise errors in the context, the exchange with a proxy, as a DialError with upstream's text.

    Args:
        proxy_address: the address of the proxy.
        target: host:port of the server.
    """
    try:
        yield
    except DialError:
        raise
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        reason = str(error) if isinstance(error, OSError) else "unexpected EOF"
        raise DialError(
            f"reading HTTP response from CONNECT to {target} via proxy {proxy_address} failed: {reason}"
        ) from error
