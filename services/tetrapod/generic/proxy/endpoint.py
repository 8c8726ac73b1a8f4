"""`Endpoint`: where a backend is, which is what its connections are kept by; and the one that a URL names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from tetrapod.generic.proxy.connection import BackendError
from tetrapod.generic.proxy.tls import ClientTLS

DIAL_TIMEOUT: Final = 30.0
"""Seconds, as of Go's net/http DefaultTransport."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and port, and how it is spoken to; `tls` None: in clear."""

    host: str
    port: int
    tls: ClientTLS | None = None
    patience: float = field(default=DIAL_TIMEOUT, compare=False)
    """Seconds for a connection to be made."""
    authority: str = field(init=False, compare=False)
    """Host and port, as a URL has them."""

    def __post_init__(self) -> None:
        host = f"[{self.host}]" if ":" in self.host else self.host
        object.__setattr__(self, "authority", f"{host}:{self.port}")

    def __hash__(self) -> int:
        """Two that differ only in their TLS are rare, and certificates long."""
        return hash((self.host, self.port))


def parse_url(url: str, tls: ClientTLS | None) -> tuple[Endpoint, str, str]:
    """An endpoint, the request target, and the Host header as the URL writes it.

    Raises:
        BackendError: where it is no URL of http or https.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BackendError(f"unsupported URL {url!r}", untouched=True)
    secure = parts.scheme == "https"
    endpoint = Endpoint(parts.hostname, parts.port or (443 if secure else 80), (tls or ClientTLS()) if secure else None)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return endpoint, target, parts.netloc.rpartition("@")[2]
