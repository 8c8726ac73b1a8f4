"""Header blocks of requests, and the validation of those of responses.

HTTP/2 can carry line breaks and names that would change the meaning of a message in HTTP/1.1, and the reverse. So both
directions are validated here, as pure functions.

Upstream: golang.org/x/net/internal/httpcommon, EncodeHeaders; golang.org/x/net/http2, transport.go, handleResponse, and
frame.go, readMetaFrame
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.generic.http.h2.response_headers import CONNECTION_SPECIFIC
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.http2.header_encoding import indexed, literal, name_prefix, string
from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.golang.quoting import go_quote

_METHODS: Final = {"GET": indexed(2), "POST": indexed(3)}
_HTTPS: Final = indexed(7)
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_METHOD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROLS: Final = bytes((*range(9), *range(10, 32), 127))
"""The bytes that a header value must not contain."""
_NOT_IN_TARGET: Final = _CONTROLS + b"\t #"
_NOT_IN_AUTHORITY: Final = _NOT_IN_TARGET + b'/\\?@"<>^`{|}'
_LEFT_OUT: Final = CONNECTION_SPECIFIC | {b"host", b"content-length"}
"""Headers of a request that HTTP/2 forbids (RFC 9113, 8.2.2), or expresses otherwise."""


class MalformedResponse(Exception):
    """A header list that violates the rules of HTTP/2 for responses. The text is Go's."""


def encode_request(method: str, authority: str, target: str, headers: HeaderList, length: int | None) -> bytes:
    """Return the header block of a request, without the headers that concern an HTTP/1.1 connection.

    Args:
        method: the method.
        authority: host and port, as in a Host header.
        target: path and query.
        headers: the headers. Names with an escaped character have upper-case letters, as `x-remote-extra-a%2Fb`.
        length: the value of Content-Length; None for none.

    Raises:
        BackendError: the method, the target, the host or a header contains characters that cannot be sent.
    """
    path, host = target.encode("latin-1"), authority.encode("latin-1")
    if not _METHOD.fullmatch(method):
        raise _unsendable(f"net/http: invalid method {go_quote(method)}")
    if path[:1] not in (b"/", b"*") or _contains(path, _NOT_IN_TARGET):
        raise _unsendable(f"invalid request :path {go_quote(target)}")
    if not host or _contains(host, _NOT_IN_AUTHORITY):
        raise _unsendable("http2: invalid Host header")
    if _contains(b"".join([value for _, value in headers]), _CONTROLS):
        name = next(name for name, value in headers if _contains(value, _CONTROLS))
        raise _unsendable(f"invalid HTTP header value for header {go_quote(name.decode('latin-1'))}")
    fields = [_METHODS.get(method) or literal(b":method", method.encode()), _HTTPS, literal(b":path", path)]
    fields.append(literal(b":authority", host))
    for name, value in headers:
        if prefix := _prefix(name):
            size = len(value)
            fields.append(prefix + (bytes((size,)) + value if size < 127 else string(value)))
    if length is not None:
        fields.append(literal(b"content-length", b"%d" % length))
    return b"".join(fields)


def parse_response(fields: HeaderList) -> tuple[int, HeaderList]:
    """Return the status and the headers of a response, in a new list.

    Headers that concern an HTTP/1.1 connection are left in the list, as Go does: `returned_headers` removes them.

    Raises:
        MalformedResponse: the fields violate the rules of HTTP/2, so that the stream must be reset.
    """
    if not fields or fields[0][0] != b":status":
        raise MalformedResponse("malformed response from server: missing status pseudo header")
    status = fields[0][1]
    if len(status) != 3 or not status.isdigit() or not 100 <= int(status) <= 599:
        raise MalformedResponse("malformed response from server: malformed non-numeric status pseudo header")
    return int(status), _validated(fields[1:])


def parse_trailers(fields: HeaderList) -> HeaderList:
    """Validate the trailers of a response, and return them in a new list.

    Raises:
        MalformedResponse: the trailers violate the rules of HTTP/2, so that the stream must be reset.
    """
    return _validated(fields[:])


def content_length(headers: HeaderList) -> int:
    """Return the length that the headers of a response declare, or -1 for none.

    Equal repeated Content-Length headers are reduced to one, in place.

    Raises:
        MalformedResponse: the value is not a number, or there are different ones.
    """
    values = [value for name, value in headers if name == b"content-length"]
    if not values:
        return -1
    first = values[0]
    if len(first) > 18 or not first.isdigit() or any(value != first for value in values):
        raise MalformedResponse("malformed response from server: invalid Content-Length")
    if len(values) > 1:
        headers[:] = [*(header for header in headers if header[0] != b"content-length"), (b"content-length", first)]
    return int(first)


def _validated(headers: HeaderList) -> HeaderList:
    for name, _ in headers:
        if not _permitted_name(name):
            raise MalformedResponse(f"invalid header field name {go_quote(name.decode('latin-1'))}")
    if _contains(b"".join([value for _, value in headers]), _CONTROLS):
        name = next(name for name, value in headers if _contains(value, _CONTROLS))
        raise MalformedResponse(f"invalid header field value for {go_quote(name.decode('latin-1'))}")
    return headers


def _contains(data: bytes, forbidden: bytes) -> bool:
    """Return whether data contains one of the forbidden bytes. Ten times as fast as a regular expression."""
    return len(data.translate(None, forbidden)) != len(data)


def _unsendable(text: str) -> BackendError:
    return BackendError(text, no_response=True)


@bounded(count=1024, size=256 << 10, largest=512)
def _permitted_name(name: bytes) -> bool:
    return _NAME.fullmatch(name) is not None


@bounded(count=1024, size=256 << 10, largest=512)
def _prefix(name: bytes) -> bytes:
    """Return the encoded, lower-case name of a header; b"" for a header that HTTP/2 forbids or expresses otherwise.

    Raises:
        BackendError: it is not a valid header name.
    """
    name = name.lower()
    if not _NAME.fullmatch(name):
        raise _unsendable(f"invalid HTTP header name {go_quote(name.decode('latin-1'))}")
    return b"" if name in _LEFT_OUT else name_prefix(name)
