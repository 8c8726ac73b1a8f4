"""The address of a backend, which is the key of its pooled connections, and its parsing from a URL."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.machinery.golang.ip_addresses import join_host_port

DIAL_TIMEOUT: Final = 30.0
"""The default timeout for establishing a connection, in seconds, as in Go's net/http DefaultTransport."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and port with a TLS configuration.

    Requests to equal endpoints share connections.

    Attributes:
        host: the host name or IP address.
        port: the port.
        tls: the TLS configuration; None for plain HTTP.
        dial_timeout: the timeout in seconds for establishing a connection.
        authority: host and port in the form of a URL.
    """

    host: str
    port: int
    tls: ClientTLS | None = None
    dial_timeout: float = field(default=DIAL_TIMEOUT, compare=False)
    authority: str = field(init=False, compare=False)
    _offering_http2: Endpoint | None = field(init=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "authority", join_host_port(self.host, self.port))

    def offering_http2(self) -> Endpoint:
        """Return a copy of this endpoint, which must have TLS, that offers HTTP/2 beside HTTP/1.1 by ALPN.

        Every call returns the same object, so the connection pool finds its connections fast.
        """
        if self._offering_http2 is None:
            assert self.tls is not None
            object.__setattr__(self, "_offering_http2", replace(self, tls=replace(self.tls, http2=True)))
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
        url: an http or https URL.
        tls: the TLS configuration for https; None for the CAs of the system.

    Raises:
        BackendError: the URL is not an http or https URL.
    """
    url_parts = urlsplit(url)
    if url_parts.scheme not in ("http", "https") or not url_parts.hostname:
        raise BackendError(f"unsupported URL {url!r}", no_response=True)
    secure = url_parts.scheme == "https"
    endpoint = Endpoint(
        url_parts.hostname, url_parts.port or (443 if secure else 80), (tls or ClientTLS()) if secure else None
    )
    target = (url_parts.path or "/") + (f"?{url_parts.query}" if url_parts.query else "")
    return endpoint, target, url_parts.netloc.rpartition("@")[2]
