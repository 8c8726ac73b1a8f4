"""OpenSSL functions that Python's ssl does not offer, called through ctypes if it is certain to be the same OpenSSL and context.

If that is not certain (another Python, or an OpenSSL linked into it), callers do without. Importing ctypes takes a few milliseconds.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

_LAYOUT_KNOWN: Final = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 14)
"""In these versions the SSL_CTX is the first member of an SSLContext (PySSLContext of Modules/_ssl.c)."""


@cache
def library() -> Any:
    """Return the OpenSSL library that Python's ssl is linked with, or None if it cannot be reached."""
    try:
        import _ssl
        import ctypes

        found = ctypes.CDLL(_ssl.__file__)
        _declare(found, ctypes)
        version = found.OpenSSL_version(0).decode()
    except (ImportError, AttributeError, OSError):
        return None
    return found if version == ssl.OPENSSL_VERSION else None


def _declare(found: Any, c: Any) -> None:
    for name, result, arguments in (
        ("OpenSSL_version", c.c_char_p, (c.c_int,)),
        ("X509_verify_cert_error_string", c.c_char_p, (c.c_long,)),
        ("X509_STORE_CTX_get_error", c.c_int, (c.c_void_p,)),
        ("SSL_CTX_get_num_tickets", c.c_size_t, (c.c_void_p,)),
        ("SSL_CTX_ctrl", c.c_long, (c.c_void_p, c.c_int, c.c_long, c.c_void_p)),
        ("SSL_CTX_set_verify", None, (c.c_void_p, c.c_int, c.c_void_p)),
        ("SSL_load_client_CA_file", c.c_void_p, (c.c_char_p,)),
        ("SSL_add_file_cert_subjects_to_stack", c.c_int, (c.c_void_p, c.c_char_p)),
        ("SSL_CTX_set_client_CA_list", None, (c.c_void_p, c.c_void_p)),
    ):
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments


def address_of(context: ssl.SSLContext) -> int | None:
    """Return the address of the SSL_CTX of a server's context, or None.

    To be certain of the address, a value set through Python must be visible through it.
    """
    openssl = library()
    if openssl is None or not _LAYOUT_KNOWN:
        return None
    import ctypes

    found = ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value
    if not found:
        return None
    usual = context.num_tickets
    try:
        for probe in (usual + 3, usual + 1):
            context.num_tickets = probe
            if openssl.SSL_CTX_get_num_tickets(found) != probe:
                return None
    finally:
        context.num_tickets = usual
    return found


def name_authorities(context: ssl.SSLContext, bundles: Sequence[str]) -> None:
    """Send clients the names of the accepted certificate authorities, so that a client with several certificates can choose.

    Upstream: ClientCAs of tls.Config, in k8s.io/apiserver/pkg/server/dynamiccertificates/tlsconfig.go.
    """
    openssl, address = library(), address_of(context)
    if openssl is None or address is None or not bundles:
        return
    names = openssl.SSL_load_client_CA_file(os.fsencode(bundles[0]))
    if not names:
        return
    for bundle in bundles[1:]:
        openssl.SSL_add_file_cert_subjects_to_stack(names, os.fsencode(bundle))
    openssl.SSL_CTX_set_client_CA_list(address, names)
