"""The address of a backend, which is the key of its pooled connections, and its parsing from a URL."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.tls import ClientTLS, http2_disabled
from tetrapod.machinery.golang.ip_addresses import join_host_port

DIAL_TIMEOUT: Final = 30.0
"""The default timeout for establishing a connection, in seconds, as in Go's net/http DefaultTransport."""
_LOCAL: Final = "localhost"
"""The Host header for a server that is reached by a Unix socket."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and port with a TLS configuration, or the path of a Unix socket.

    Requests to equal endpoints share connections.

    Attributes:
        host: the host name or IP address, or the path of a Unix socket.
        port: the port; 0 for a Unix socket.
        tls: the TLS configuration; None for plain HTTP.
        dial_timeout: the timeout in seconds for establishing a connection.
        http2: whether HTTP/2 is spoken without TLS, which only servers at Unix sockets support.
        is_unix: whether `host` is the path of a Unix socket, without TLS. It never follows from the form of `host`,
            which a user may have chosen, as an address in the status of a Node.
        authority: host and port in the form of a URL; `localhost` for a Unix socket.
        certificate: the path of the client certificate; "" for none.
    """

    host: str
    port: int
    tls: ClientTLS | None = None
    dial_timeout: float = field(default=DIAL_TIMEOUT, compare=False)
    http2: bool = False
    is_unix: bool = False
    authority: str = field(init=False, compare=False)
    certificate: str = field(init=False, compare=False)
    _offering_http2: Endpoint | None = field(init=False, compare=False, default=None)

    def __post_init__(self) -> None:
        authority = _LOCAL if self.is_unix else join_host_port(self.host, self.port)
        object.__setattr__(self, "authority", authority)
        object.__setattr__(self, "certificate", "" if self.tls is None else self.tls.certificate)

    @property
    def permits_http2(self) -> bool:
        """Whether HTTP/2 may be used: TLS negotiates it, and servers at Unix sockets support it."""
        return self.tls is not None or (self.is_unix and not http2_disabled())

    def offering_http2(self) -> Endpoint:
        """Return a copy of this endpoint that offers HTTP/2 beside HTTP/1.1 by ALPN, or speaks it without TLS.

        `permits_http2` must hold. Every call returns the same object, so the connection pool finds its connections
        fast.
        """
        if self._offering_http2 is None:
            tls = replace(self.tls, http2=True) if self.tls is not None else None
            object.__setattr__(self, "_offering_http2", replace(self, tls=tls, http2=tls is None))
        assert self._offering_http2 is not None
        return self._offering_http2

    def __hash__(self) -> int:
        """Hash host and port only.

        Endpoints that differ only in their TLS configuration are rare, and certificates are long.
        """
        return hash((self.host, self.port))


def parse_url(url: str, tls: ClientTLS | None) -> tuple[Endpoint, str, str]:
    """Return the endpoint of a URL, the request target (path and query), and the Host header as the URL contains it.

    Args:
        url: an http or https URL, or one of `unix_url`.
        tls: the TLS configuration for https; None for the CAs of the system.

    Raises:
        BackendError: the URL is of none of these kinds, or its host or port is malformed.
    """
    try:
        url_parts = urlsplit(url)
        port = url_parts.port
    except ValueError:
        raise BackendError(f"unsupported URL {url!r}", no_response=True) from None
    if url_parts.scheme == "unix" and url_parts.netloc.startswith("%2F"):
        endpoint = Endpoint(unquote(url_parts.netloc), 0, is_unix=True)
        return endpoint, _target(url_parts), endpoint.authority
    if url_parts.scheme not in ("http", "https") or not url_parts.hostname:
        raise BackendError(f"unsupported URL {url!r}", no_response=True)
    secure = url_parts.scheme == "https"
    endpoint = Endpoint(url_parts.hostname, port or (443 if secure else 80), (tls or ClientTLS()) if secure else None)
    return endpoint, _target(url_parts), url_parts.netloc.rpartition("@")[2]


def _target(url: SplitResult) -> str:
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


def is_socket(url: str) -> bool:
    """Return whether a URL has the scheme of Unix sockets, as `unix:///PATH`."""
    return url.startswith("unix:")


def unix_url(url: str) -> str:
    """Return a URL for the server at a Unix socket to which request targets can be appended.

    Args:
        url: `unix:///PATH`, with the absolute path of the socket.

    Raises:
        BackendError: the URL is not of this form.
    """
    url_parts = urlsplit(url)
    if url_parts.netloc or not url_parts.path.startswith("/"):
        raise BackendError(f"{url!r} is not unix:///PATH", no_response=True)
    return f"unix://{quote(url_parts.path, safe='')}"
