"""How OpenSSL verifies certificates, made to agree with Go's crypto/x509, by which everybody's certificates around Kubernetes are made.

Upstream: crypto/x509/verify.go.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

_ENCODING_DER: Final = 2  # of Python's _ssl


def verify_as_go(context: ssl.SSLContext) -> ssl.SSLContext:
    """Whatever certificate is in the bundle vouches for itself and for what it signed, though it be no root, or no authority at all.

    controller-runtime's envtest gives the certificate of its webhooks for their bundle. What Python 3.13 asks for beyond, Go does not.
    """
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    return context


def verified_chain(connection: Any) -> tuple[bytes, ...]:
    """The peer's certificates as DER, its own first, up to what vouches for them; of a session that is taken up again its own alone.

    `connection` is an SSLObject after its handshake. Before 3.13 Python has the chain, but tells it only where it keeps it.
    """
    own: bytes | None = connection.getpeercert(True)
    if own is None:
        return ()
    public = getattr(connection, "get_verified_chain", None)
    found = public() if public is not None else connection._sslobj.get_verified_chain()
    chain = [one if isinstance(one, bytes) else one.public_bytes(_ENCODING_DER) for one in found or ()]
    return tuple(chain) if chain and chain[0] == own else (own,)
