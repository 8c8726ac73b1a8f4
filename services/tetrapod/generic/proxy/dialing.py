"""Connecting to a backend, with Go's error texts.

OpenSSL verifies the certificate. To report an error as Go does, the certificate is fetched again over a connection that
carries no data.

Upstream: net/dial.go, crypto/tls and crypto/x509/verify.go.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.dialing import Dialer, DialError, connect, failure_reason
from tetrapod.generic.http.buffered_protocol import Buffered
from tetrapod.generic.http.unix_sockets import is_same_user
from tetrapod.generic.proxy.connection import BackendConnection
from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.h2.connection import Http2Connection
from tetrapod.generic.proxy.tls import ClientTLS, client_context
from tetrapod.generic.proxy.tls_errors import openssl_text, tls_text
from tetrapod.machinery.golang.ip_addresses import join_host_port

_FETCH_TIMEOUT: Final = 5.0
_UNKNOWN_AUTHORITY: Final = "x509: certificate signed by unknown authority"

_NO_PROTOCOL: Final = "alert no application protocol"

Connection = BackendConnection | Http2Connection


class NoCommonVersion(BackendError):
    """The server refused the handshake, because it speaks none of the offered versions of HTTP (ALPN)."""


class _Negotiated(asyncio.Protocol):
    """The asyncio protocol of a new connection during its TLS handshake.

    After the handshake it creates the connection object for the HTTP version that the backend chose by ALPN, which
    replaces it as the protocol of the transport. Without TLS it does so when the connection is established.

    Args:
        http1: makes the protocol of HTTP/1.1.
        http2: makes the protocol of HTTP/2.
        prior_knowledge: whether the server is known to speak HTTP/2 without TLS.
    """

    def __init__(
        self, http1: Callable[[], BackendConnection], http2: Callable[[], Http2Connection], *, prior_knowledge: bool
    ) -> None:
        self._http1, self._http2, self._prior_knowledge = http1, http2, prior_knowledge
        self.connection: Connection | None = None

    def connection_made(self, transport: Any) -> None:
        ssl_object = transport.get_extra_info("ssl_object")
        if self._prior_knowledge or (ssl_object is not None and ssl_object.selected_alpn_protocol() == "h2"):
            self.connection = self._http2()
            protocol: asyncio.BaseProtocol = Buffered(self.connection)
        else:
            protocol = self.connection = self._http1()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


async def dial(
    endpoint: Endpoint,
    http1: Callable[[], BackendConnection],
    http2: Callable[[], Http2Connection],
    dialer: Dialer | None = None,
) -> Connection:
    """Connect to an endpoint, with a TLS handshake if it has TLS, and return the connection.

    The server at a Unix socket must run as the user of this process.

    Args:
        endpoint: the endpoint.
        http1: creates a connection for HTTP/1.1.
        http2: creates a connection for HTTP/2, which is used if the endpoint permits it and the backend chooses it.
        dialer: connects by way of a proxy; None to connect directly. A Unix socket is always connected directly.

    Raises:
        BackendError: the connection failed; the text is Go's. Its `no_response` is set. `NoCommonVersion` if the server
            refused the offered versions of HTTP.
    """
    tls = endpoint.tls
    try:
        context = client_context(tls) if tls is not None else None
    except (OSError, ValueError) as error:
        raise BackendError(f"unable to use the TLS configuration: {error}", no_response=True) from error
    try:
        async with asyncio.timeout(endpoint.dial_timeout):
            if endpoint.is_unix:
                return await _dial_unix(endpoint, http1, http2)
            negotiated = await connect(
                dialer,
                lambda: _Negotiated(http1, http2, prior_knowledge=False),
                endpoint.host,
                endpoint.port,
                tls=context,
                server_name=server_name(endpoint),
            )
            assert negotiated.connection is not None
            return negotiated.connection
    except DialError as error:
        raise BackendError(str(error), no_response=True) from error
    except (OSError, ValueError) as error:
        refused = isinstance(error, ssl.SSLError) and _NO_PROTOCOL in openssl_text(error)
        failure = NoCommonVersion if refused else BackendError
        raise failure(await dial_error_text(endpoint, error, dialer), no_response=True) from error


def ignored_offer(connection: Connection) -> bool:
    """Return whether the server of a new TLS connection has chosen none of the offered versions of HTTP (ALPN)."""
    ssl_object = connection.transport.get_extra_info("ssl_object")
    return ssl_object is not None and ssl_object.selected_alpn_protocol() is None


async def dial_error_text(endpoint: Endpoint, error: Exception, dialer: Dialer | None = None) -> str:
    """Return Go's text for a failed connection to an endpoint.

    Args:
        endpoint: the endpoint.
        error: the OSError or ValueError with which connecting failed, or the TimeoutError.
        dialer: the dialer of the connection; None if it was direct.
    """
    if isinstance(error, TimeoutError):
        where = f"unix {endpoint.host}" if endpoint.is_unix else f"tcp {endpoint.authority}"
        return f"dial {where}: i/o timeout"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {await _certificate_text(endpoint, error, dialer)}"
    if isinstance(error, ssl.SSLError):
        return tls_text(error)
    return await _dial_text(endpoint, error)


async def _dial_unix(
    endpoint: Endpoint, http1: Callable[[], BackendConnection], http2: Callable[[], Http2Connection]
) -> Connection:
    """Connect to a Unix socket, and return the connection.

    Args:
        endpoint: the endpoint, whose `host` is the path of the socket. Its `http2` chooses the version of HTTP.
        http1: creates a connection for HTTP/1.1.
        http2: creates a connection for HTTP/2.

    Raises:
        OSError: the connection failed, or a process of another user listens there.
    """
    transport, negotiated = await asyncio.get_running_loop().create_unix_connection(
        lambda: _Negotiated(http1, http2, prior_knowledge=endpoint.http2), endpoint.host
    )
    assert negotiated.connection is not None
    if not is_same_user(transport.get_extra_info("socket")):
        transport.abort()
        raise PermissionError("a process of another user listens")
    return negotiated.connection


def server_name(endpoint: Endpoint) -> str | None:
    """Return the name for SNI and verification; None without TLS."""
    return (endpoint.tls.server_name or endpoint.host) if endpoint.tls is not None else None


async def _dial_text(endpoint: Endpoint, error: Exception) -> str:
    if endpoint.is_unix:
        return f"dial unix {endpoint.host}: {failure_reason(error)}"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {endpoint.host}{_nameserver()}: no such host"
    if (
        isinstance(error, ConnectionResetError | BrokenPipeError)
        or str(error) == "SSL handshake is taking longer than expected"
    ):
        return (
            "EOF"
            if "SSL" in str(error) or not str(error)
            else f"read tcp {endpoint.authority}: read: connection reset by peer"
        )
    return f"dial tcp {await _address(endpoint)}: {failure_reason(error)}"


async def _address(endpoint: Endpoint) -> str:
    """Return the address and port of the endpoint for an error text.

    A name is looked up; its first IPv4 address is preferred. If the lookup fails, the name itself is returned.
    """
    host: str = endpoint.host
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return endpoint.authority
    with suppress(OSError):
        infos = await asyncio.get_running_loop().getaddrinfo(host, endpoint.port, type=socket.SOCK_STREAM)
        addresses = [str(item[4][0]) for item in infos]
        host = next((a for a in addresses if ":" not in a), addresses[0])
    return join_host_port(host, endpoint.port)


def _nameserver() -> str:
    with suppress(OSError):
        for line in Path("/etc/resolv.conf").read_text("utf-8").splitlines():
            fields = line.split()
            if len(fields) > 1 and fields[0] == "nameserver":
                return f" on {fields[1]}:53"
    return ""


async def _certificate_text(endpoint: Endpoint, error: ssl.SSLCertVerificationError, dialer: Dialer | None) -> str:
    from tetrapod.generic.proxy.certificate_errors import certificate_error

    try:
        certificate = await _fetch_certificate(endpoint, dialer)
    except (OSError, ValueError, TimeoutError):
        certificate = None
    if certificate is not None and (text := certificate_error(certificate, server_name(endpoint) or "")):
        return text
    if error.verify_code in (2, 18, 19, 20, 21):  # OpenSSL: no issuer, self-signed, unable to verify
        return _UNKNOWN_AUTHORITY
    if error.verify_code == 26:
        return "x509: certificate specifies an incompatible key usage"
    return f"x509: {error.verify_message}"


async def _fetch_certificate(endpoint: Endpoint, dialer: Dialer | None) -> bytes | None:
    """Return the certificate of the backend as DER, without verifying it; None if the backend sent none.

    Raises:
        OSError: connecting or the handshake failed (TimeoutError and ssl.SSLError are such errors).
    """
    context = client_context(
        ClientTLS(insecure=True, server_name=endpoint.tls.server_name if endpoint.tls is not None else "")
    )
    async with asyncio.timeout(_FETCH_TIMEOUT):
        name = server_name(endpoint)
        if dialer is None:
            _, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=context, server_hostname=name)
        else:
            connected = await dialer(endpoint.host, endpoint.port)
            _, writer = await asyncio.open_connection(sock=connected, ssl=context, server_hostname=name)
    try:
        certificate: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return certificate
    finally:
        writer.transport.abort()
