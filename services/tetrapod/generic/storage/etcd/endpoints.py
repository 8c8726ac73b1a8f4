"""Endpoints of `--etcd-servers`: addresses of TCP and Unix sockets.

Upstream: go.etcd.io/etcd/client/v3/internal/endpoint/endpoint.go, translateEndpoint.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit


class Endpoint(NamedTuple):
    """The address of one etcd member.

    - `scheme` is "http", "https", "unix" or "unixs".
    - `host` is also the name in the certificate. For a Unix socket it is the last segment of the path, and
      `port` is not used.
    - `path` is that of a Unix socket, which begins with a NUL byte if the socket is abstract; "" for TCP.
    """

    scheme: str
    host: str
    port: int
    path: str = ""

    def uses_tls(self, *, configured: bool) -> bool:
        """Return whether connections use TLS. With `unix://` they do if files for TLS are configured (`configured`)."""
        return self.scheme in ("https", "unixs") or (self.scheme == "unix" and configured)


def parse_endpoint(url: str) -> Endpoint:
    """Return the address in a URL or in `host:port`; the port is 2379 if it is missing.

    `unix:///run/etcd.sock` is an absolute path, `unix://etcd.sock` and `unix:etcd.sock` are relative to the working
    directory, and `unix:@name` is an abstract socket.

    Raises:
        ValueError: the scheme is unknown, or the host or path is missing.
    """
    scheme, colon, rest = url.partition(":")
    if colon and scheme in ("unix", "unixs"):
        if path := rest.removeprefix("//"):
            name = path.rpartition("/")[2]
            return Endpoint(scheme, name, 0, f"\0{path[1:]}" if path.startswith("@") else path)
    else:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme in ("http", "https") and parts.hostname:
            return Endpoint(parts.scheme, parts.hostname, parts.port or 2379)
    raise ValueError(f"not an etcd endpoint: {url!r} (http://host:port, https://host:port or unix:///path)")
