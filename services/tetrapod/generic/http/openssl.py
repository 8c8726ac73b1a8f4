"""OpenSSL functions that Python's ssl does not offer, called through ctypes.

They are called only if it is certain that ctypes reaches the same OpenSSL and context as Python's ssl. If that is not
certain (another Python, or an OpenSSL linked into it), callers do without. Importing ctypes takes a few milliseconds.
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

_SET_GROUPS_LIST: Final = 92
"""SSL_CTRL_SET_GROUPS_LIST: OpenSSL offers SSL_CTX_set1_groups_list as a macro only."""


@cache
def library() -> Any:
    """Return the OpenSSL library that Python's ssl is linked with (a ctypes.CDLL), or None if it cannot be reached."""
    try:
        import _ssl
        import ctypes

        openssl = ctypes.CDLL(_ssl.__file__)
        _declare_functions(openssl, ctypes)
        version = openssl.OpenSSL_version(0).decode()
    except (ImportError, AttributeError, OSError):
        return None
    return openssl if version == ssl.OPENSSL_VERSION else None


def _declare_functions(openssl: Any, c_types: Any) -> None:
    for name, result, arguments in (
        ("OpenSSL_version", c_types.c_char_p, (c_types.c_int,)),
        ("ERR_clear_error", None, ()),
        ("X509_verify_cert_error_string", c_types.c_char_p, (c_types.c_long,)),
        ("X509_STORE_CTX_get_error", c_types.c_int, (c_types.c_void_p,)),
        ("SSL_CTX_get_num_tickets", c_types.c_size_t, (c_types.c_void_p,)),
        ("SSL_CTX_ctrl", c_types.c_long, (c_types.c_void_p, c_types.c_int, c_types.c_long, c_types.c_void_p)),
        ("SSL_CTX_set_verify", None, (c_types.c_void_p, c_types.c_int, c_types.c_void_p)),
        ("SSL_load_client_CA_file", c_types.c_void_p, (c_types.c_char_p,)),
        ("SSL_add_file_cert_subjects_to_stack", c_types.c_int, (c_types.c_void_p, c_types.c_char_p)),
        ("SSL_CTX_set_client_CA_list", None, (c_types.c_void_p, c_types.c_void_p)),
    ):
        function = getattr(openssl, name)
        function.restype, function.argtypes = result, arguments


def address_of(context: ssl.SSLContext) -> int | None:
    """Return the address of the SSL_CTX of a server's context, or None if it cannot be found reliably.

    The address is only returned if a value that is set through Python is visible there.
    """
    openssl = library()
    if openssl is None or not _LAYOUT_KNOWN:
        return None
    import ctypes

    address = ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value
    if not address:
        return None
    configured = context.num_tickets
    try:
        for probe in (configured + 3, configured + 1):
            context.num_tickets = probe
            if openssl.SSL_CTX_get_num_tickets(address) != probe:
                return None
    finally:
        context.num_tickets = configured
    return address


def set_groups(context: ssl.SSLContext, groups: str) -> bool:
    """Allow only some groups for the key exchange in handshakes of this context.

    Args:
        context: the context of a server.
        groups: OpenSSL's names, joined by colons.

    Returns:
        Whether it succeeded. It fails if OpenSSL cannot be reached or does not know a group.
    """
    openssl, address = library(), address_of(context)
    if openssl is None or address is None:
        return False
    succeeded: bool = openssl.SSL_CTX_ctrl(address, _SET_GROUPS_LIST, 0, groups.encode()) == 1
    openssl.ERR_clear_error()  # another function would report the error as its own
    return succeeded


def name_authorities(context: ssl.SSLContext, bundles: Sequence[str]) -> None:
    """Send clients the names of the accepted certificate authorities in handshakes of this context.

    A client with several certificates can then choose the right one. Nothing happens if OpenSSL cannot be reached.
    Upstream: k8s.io/apiserver/pkg/server/dynamiccertificates/tlsconfig.go, ClientCAs

    Args:
        context: the context of a server.
        bundles: the paths of the PEM files with the authorities.
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
