"""OpenSSL's certificate verification with the behaviour of Go's crypto/x509, and connections without Python's wrappers.

The certificates around Kubernetes are made for Go's verification.
Upstream: crypto/x509/verify.go.
"""

from __future__ import annotations

import ssl
from typing import Any, Final, Self

_ENCODING_DER: Final = 2  # constant of Python's _ssl


def verify_as_go(context: ssl.SSLContext) -> ssl.SSLContext:
    """Make every certificate in the context's CA bundle a trust anchor, also intermediates and leaves.

    Return the context.

    controller-runtime's envtest uses the certificate of its webhooks as their CA bundle. The stricter checks of Python
    3.13 are disabled, because Go does not make them.
    """
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    return context


def verified_chain(connection: Any) -> tuple[bytes, ...]:
    """Return the verified certificate chain of the peer as DER, from the peer's own certificate to the trust anchor.

    The chain is empty if the peer sent no certificate. In a resumed session it has only the peer's own certificate.

    Args:
        connection: an SSLObject after its handshake.
    """
    own: bytes | None = connection.getpeercert(True)
    if own is None:
        return ()
    method = getattr(connection, "get_verified_chain", None)
    verified = method() if method is not None else connection._sslobj.get_verified_chain()
    chain = [
        certificate if isinstance(certificate, bytes) else certificate.public_bytes(_ENCODING_DER)
        for certificate in verified or ()
    ]
    return tuple(chain) if chain and chain[0] == own else (own,)


class DirectTLS(ssl.SSLObject):
    """An SSLObject whose `read`, `write` and `pending` are OpenSSL's own methods, without Python's wrappers.

    The event loop calls them a dozen times for each proxied request. Set it as `sslobject_class` of an SSLContext.
    """

    @classmethod
    def _create(cls, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> Self:
        connection: Self = super()._create(incoming, outgoing, *args, **kwargs)  # type: ignore[misc]
        inner: Any = connection._sslobj  # type: ignore[attr-defined]
        connection.read, connection.write, connection.pending = inner.read, inner.write, inner.pending  # type: ignore[method-assign]
        return connection
