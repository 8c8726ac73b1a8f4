"""TLS contexts for connections to backends: trusted CAs, the client certificate, and the offered versions of HTTP.

They are cached, because creating one takes milliseconds.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tetrapod.generic.certificates.verification import DirectTLS, verify_as_go
from tetrapod.machinery.boundedcache import BoundedCache


@dataclass(frozen=True, slots=True)
class ClientTLS:
    """A TLS client configuration.

    Attributes:
        ca_data: the CA bundle as PEM; "" for the CAs of the system.
        insecure: whether the server certificate is not verified.
        certificate: the path of the client certificate; "" for none. A renewed file is read again.
        key: the path of the private key.
        server_name: the name for SNI and for the verification of the certificate; "" for the host.
        http2: whether HTTP/2 is offered beside HTTP/1.1. The pool sets it for watches.
    """

    ca_data: str = ""
    insecure: bool = False
    certificate: str = ""
    key: str = ""
    server_name: str = ""
    http2: bool = False


_contexts: Final[BoundedCache[tuple[ClientTLS, int], ssl.SSLContext]] = BoundedCache(
    count=1000, size=64 << 20, largest=16 << 20, weigh_entry=lambda key, _: 50_000 + 4 * len(key[0].ca_data)
)


def http2_disabled() -> bool:
    """Return whether the environment forbids HTTP/2 to backends, as it does for client-go (DISABLE_HTTP2)."""
    return bool(os.environ.get("DISABLE_HTTP2"))


def client_context(tls: ClientTLS) -> ssl.SSLContext:
    """Return the SSL context of a configuration, from a cache unless the certificate file has changed.

    Raises:
        OSError, ValueError: a file or the CA bundle is unusable (ssl.SSLError is one of them).
    """
    stamp = Path(tls.certificate).stat().st_mtime_ns if tls.certificate else 0
    context = _contexts.recall((tls, stamp))
    return _contexts.keep((tls, stamp), _make(tls)) if context is None else context


def _make(tls: ClientTLS) -> ssl.SSLContext:
    context = verify_as_go(ssl.create_default_context(cadata=tls.ca_data or None))
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.sslobject_class = DirectTLS
    context.set_alpn_protocols(["h2", "http/1.1"] if tls.http2 and not http2_disabled() else ["http/1.1"])
    if tls.certificate:
        context.load_cert_chain(tls.certificate, tls.key or None)
    return context
