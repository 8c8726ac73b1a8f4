"""TLS handshakes that succeed although OpenSSL rejects the client certificate.

Because the handshake succeeds, authentication can answer the request.

Upstream: tls.RequestClientCert in k8s.io/apiserver/pkg/server/secure_serving.go: a request with a certificate of an
unknown authority can still authenticate with a bearer token, and is answered 401 without one. Python's ssl does not
offer this. OpenSSL has a callback that receives each result of the verification and may override a failure
(SSL_CTX_set_verify). Contexts are changed through openssl.py.

OpenSSL still verifies the certificate. A certificate is accepted only if OpenSSL verified it without any error during
the handshake of this same connection. An error in this module leaves the certificate unverified, which counts as
invalid. Session resumption is disabled, because resumed handshakes verify nothing.
"""

from __future__ import annotations

import ssl
import threading
from functools import cache
from typing import Any, Final, NamedTuple

from tetrapod.generic.certificates.rejections import rejection_error
from tetrapod.generic.certificates.verification import verified_chain
from tetrapod.generic.http.openssl import address_of, library

_SET_SESSION_CACHE_MODE: Final = 44  # of SSL_CTX_ctrl
_SESSION_CACHE_OFF: Final = 0
_NOT_VERIFIED: Final = "x509: the certificate was not verified"


class VerificationResult(NamedTuple):
    """The result of verifying the certificate that a client sent.

    Attributes:
        chain: the verified chain as DER, the client's certificate first; empty if it is not trusted.
        error: the reason why the certificate is not trusted; "" if it is trusted or the client sent none.
        same_user: whether the client is a process of this process's user, connected by a Unix socket without TLS.
    """

    chain: tuple[bytes, ...] = ()
    error: str = ""
    same_user: bool = False


SAME_USER: Final = VerificationResult(same_user=True)


class DeferredVerificationConnection(ssl.SSLObject):
    """The SSLObject of contexts that `defer_verification` has changed. It records the results of the verification.

    Attributes:
        verified: whether OpenSSL verified at least one certificate of the chain.
        error: the text of OpenSSL's first verification error, or "".
        error_code: the number of that error, or 0.
    """

    verified = False
    error = ""
    error_code = 0

    def do_handshake(self) -> None:
        _handshakes.current = self
        try:
            super().do_handshake()
        finally:
            _handshakes.current = None

    def getpeercert(self, binary_form: bool = False) -> Any:
        """Return the certificate as DER if `binary_form`, else None instead of a dictionary.

        Event loops request the dictionary, which nothing uses and which would be parsed from an unverified certificate.
        """
        return super().getpeercert(True) if binary_form else None


class _Handshakes(threading.local):
    """Thread-local storage of the connection whose handshake runs in this thread.

    The verification callback, which OpenSSL calls without the connection, records its results on it.
    """

    current: DeferredVerificationConnection | None = None


_handshakes: Final = _Handshakes()


def verification_result(connection: Any) -> VerificationResult:
    """Return the result of verifying the client certificate of `connection`, an SSLObject after its handshake.

    Without a client certificate the result is empty. If verification was deferred (`defer_verification`) and the TLS
    session was resumed, the result has an error, because a resumed handshake does not verify the certificate.
    """
    certificate = connection.getpeercert(True)
    if certificate is None:
        return VerificationResult()
    if isinstance(connection, DeferredVerificationConnection):
        if connection.error:
            return VerificationResult((), rejection_error(certificate, connection.error_code, connection.error))
        if not connection.verified or connection.session_reused:
            return VerificationResult((), _NOT_VERIFIED)
    return VerificationResult(verified_chain(connection))


def defer_verification(context: ssl.SSLContext) -> bool:
    """Let handshakes of this context succeed with any client certificate, or none. Session resumption is disabled.

    The context's `sslobject_class` must be a DeferredVerificationConnection.

    Returns:
        False, with the context unchanged, if OpenSSL cannot be reached (another Python, or an OpenSSL linked into it).
            Handshakes with an invalid certificate then still fail.
    """
    openssl, address = library(), address_of(context)
    if openssl is None or address is None:
        return False
    # As in Go, the ticket resumes no session, but acknowledges the client's last message if Nagle's algorithm waits
    # for that.
    context.num_tickets = 1
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    openssl.SSL_CTX_ctrl(address, _SET_SESSION_CACHE_MODE, _SESSION_CACHE_OFF, None)
    context.verify_mode = ssl.CERT_OPTIONAL
    openssl.SSL_CTX_set_verify(address, int(context.verify_mode), _callback())
    return True


@cache
def _callback() -> Any:
    """Return `_record_result` as a C callback for SSL_CTX_set_verify.

    `functools.cache` keeps the callback alive as long as the process.
    """
    import ctypes

    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(_record_result)


def _record_result(verified: int, store: int | None) -> int:
    """Record OpenSSL's result for one certificate of a chain on the connection, and return 1 to continue the handshake.

    Return 0, which fails the handshake, if that is not possible.

    Args:
        verified: 1 if OpenSSL accepted the certificate, else 0.
        store: the address of the X509_STORE_CTX.
    """
    try:
        connection = _handshakes.current
        if connection is None:
            return 0
        if verified:
            connection.verified = True
        elif not connection.error:
            openssl = library()
            connection.error_code = openssl.X509_STORE_CTX_get_error(store)
            connection.error = openssl.X509_verify_cert_error_string(connection.error_code).decode()
    except Exception:
        return 0
    return 1
