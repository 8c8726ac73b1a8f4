"""Paths, user names and headers of the communication between Tetrapod's services, which users never see.

The auth service serves the paths, and rejects users outside `SERVICES_GROUP` (machinery/user.py). A service is in that
group by its own client certificate or by front-proxy identity headers. Certificates of users cannot grant it
(`X509Authenticator.reserved_groups`).
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from tetrapod.generic.http.request import Response

# The headers by which a front proxy requests audit data from the services behind it (audit/peer_audit.py).
AUDIT_REQUEST_HEADER: Final = b"x-remote-audit"
AUDIT_RESPONSE_HEADER: Final = b"x-remote-audit-findings"
AUDIT_OMIT_MANAGED_FIELDS: Final = "; omit-managed-fields"
AUDIT_STATE_KEY: Final = "audit data is requested"
"""The key in `Request.state` under which the front proxy's authenticator stores the request header."""

CORE: Final = "system:tetrapod:core"
"""The user of core's certificate; that of auth's is `system:tetrapod:auth`. Their permissions are in
auth/rbac/data/services.json.
"""
RULES_PATH: Final = "/internal/tetrapod/rules"
TOKEN_REQUESTS_PATH: Final = "/internal/tetrapod/tokenrequests"
SECRET_TOKENS_PATH: Final = "/internal/tetrapod/secrettokens"
NOT_PROCESSED: Final = b"x-tetrapod-untouched"
"""The header by which a stopping service declares that it has not processed a request, so that another replica may be
used.
"""
TRACE_SPANS: Final = b"x-remote-trace-spans"
RESPONSE_HEADERS: Final = frozenset({NOT_PROCESSED, TRACE_SPANS, AUDIT_RESPONSE_HEADER})
"""Response headers from a service to the aggregator. They are removed from responses of all other servers."""

_MOST_HEADER_BYTES: Final = 64 << 20
"""The largest decompressed size of a header in bytes. Objects are far smaller."""


def pack_header(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """Return a value as zlib-compressed JSON in base64, to be sent in a header between Tetrapod's services.

    Args:
        value: the value.
        default: called with each value of a type that orjson does not support; returns one of a supported type. With
            None, such values raise TypeError.
    """
    return base64.b64encode(zlib.compress(orjson.dumps(value, default=default), 1))


def take_out_headers(response: Response, header: bytes) -> list[Any]:
    """Remove the headers of a name from the response, and return the values that `pack_header` encoded, in order.

    Malformed values are left out.
    """
    values = list(_unpack(response, header))
    response.headers = [other for other in response.headers if other[0] != header]
    return values


def _unpack(response: Response, header: bytes) -> Iterator[Any]:
    for name, value in response.headers:
        if name == header:
            try:
                decompressor = zlib.decompressobj()
                data = decompressor.decompress(base64.b64decode(value), _MOST_HEADER_BYTES)
                if decompressor.eof:
                    yield orjson.loads(data)
            except (binascii.Error, zlib.error, orjson.JSONDecodeError):
                continue
