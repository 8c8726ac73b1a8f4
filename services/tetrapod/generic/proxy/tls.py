"""TLS towards a backend: whom to believe, and who we are. Contexts are kept, since making one takes milliseconds."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from tetrapod.generic.certificates.direct import DirectTLS
from tetrapod.generic.certificates.verification import verify_as_go


@dataclass(frozen=True, slots=True)
class ClientTLS:
    """`ca_data` is PEM; empty means the system's authorities. `certificate` and `key` are files: renewed ones are taken up."""

    ca_data: str = ""
    insecure: bool = False
    certificate: str = ""
    key: str = ""
    server_name: str = ""


_contexts: dict[tuple[ClientTLS, int], ssl.SSLContext] = {}


def client_context(tls: ClientTLS) -> ssl.SSLContext:
    """Raises OSError or ValueError (ssl.SSLError is one) for files or bundles that are no good."""
    stamp = Path(tls.certificate).stat().st_mtime_ns if tls.certificate else 0
    context = _contexts.get((tls, stamp))
    if context is None:
        if len(_contexts) > 1000:
            _contexts.clear()
        context = _contexts[tls, stamp] = _make(tls)
    return context


def _make(tls: ClientTLS) -> ssl.SSLContext:
    context = verify_as_go(ssl.create_default_context(cadata=tls.ca_data or None))
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.sslobject_class = DirectTLS
    context.set_alpn_protocols(["http/1.1"])
    if tls.certificate:
        context.load_cert_chain(tls.certificate, tls.key or None)
    return context
