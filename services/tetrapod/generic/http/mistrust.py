"""Handshakes that go on with a client certificate which OpenSSL would not verify, so that authentication answers for it.

Upstream: tls.RequestClientCert in k8s.io/apiserver/pkg/server/secure_serving.go: a certificate of an unknown authority does not keep a
bearer token out, and is 401 without one. Python's ssl has no word for that; OpenSSL has a callback that is told each finding of its
verification and may pass over it (SSL_CTX_set_verify). Contexts are changed through openssl.py.

OpenSSL stays the judge: a certificate counts only if it was seen to verify it, and to object to nothing, in the handshake of this very
connection. Whatever goes wrong here leaves a certificate without a verdict, and that is worth as much as a bad one. Sessions are not taken
up again: their handshakes verify nothing.
"""

from __future__ import annotations

import ssl
import threading
from functools import cache
from typing import Any, Final, NamedTuple

from tetrapod.generic.certificates.verification import verified_chain
from tetrapod.generic.http.openssl import address_of, library

_SET_SESSION_CACHE_MODE: Final = 44  # of SSL_CTX_ctrl
_SESSION_CACHE_OFF: Final = 0
_NO_VERDICT: Final = "x509: the certificate was not verified"


class Judgement(NamedTuple):
    """What a connection's certificate is worth: its verified chain as DER, or what there is against it; neither where none was shown."""

    chain: tuple[bytes, ...] = ()
    objection: str = ""


class MistrustedConnection(ssl.SSLObject):
    """A connection of a context for which `mistrust_later` is true."""

    verified = False
    objection = ""

    def do_handshake(self) -> None:
        _handshakes.current = self
        try:
            super().do_handshake()
        finally:
            _handshakes.current = None

    def getpeercert(self, binary_form: bool = False) -> Any:
        """Never as a dictionary, which event loops ask for and nobody reads: it would be made of what anybody may send."""
        return super().getpeercert(True) if binary_form else None


class _Handshakes(threading.local):
    """Whose handshake runs in this thread: OpenSSL tells its findings while it does."""

    current: MistrustedConnection | None = None


_handshakes: Final = _Handshakes()


def judgement(connection: Any) -> Judgement:
    """Of an SSLObject after its handshake."""
    if connection.getpeercert(True) is None:
        return Judgement()
    if isinstance(connection, MistrustedConnection) and (connection.objection or not connection.verified or connection.session_reused):
        return Judgement((), connection.objection or _NO_VERDICT)
    return Judgement(verified_chain(connection))


def mistrust_later(context: ssl.SSLContext) -> bool:
    """Let handshakes of this context succeed whatever certificate a client shows: its connections must be MistrustedConnections.

    False, and nothing changed, where that cannot be had (another Python, an OpenSSL linked into it): there they go on failing.
    """
    openssl, address = library(), address_of(context)
    if openssl is None or address is None:
        return False
    context.num_tickets = 1  # as Go; nothing is kept under it, but it acknowledges the client's last word where Nagle waits for that
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    openssl.SSL_CTX_ctrl(address, _SET_SESSION_CACHE_MODE, _SESSION_CACHE_OFF, None)
    context.verify_mode = ssl.CERT_OPTIONAL
    openssl.SSL_CTX_set_verify(address, int(context.verify_mode), _callback())
    return True


@cache
def _callback() -> Any:
    """As SSL_CTX_set_verify wants it; kept as long as the process lives."""
    import ctypes

    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(_found)


def _found(verified: int, store: int | None) -> int:
    """OpenSSL's finding about one certificate of a chain. 0 would end the handshake."""
    try:
        connection = _handshakes.current
        if connection is None:
            return 0
        if verified:
            connection.verified = True
        else:
            openssl = library()
            text = openssl.X509_verify_cert_error_string(openssl.X509_STORE_CTX_get_error(store)).decode()
            connection.objection = connection.objection or f"x509: {text}"
    except Exception:
        return 0
    return 1
