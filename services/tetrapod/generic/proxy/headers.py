"""Header rules of the proxy, as pure functions.

Upstream: net/http/httputil/reverseproxy.go; k8s.io/client-go/transport/round_trippers.go, SetAuthProxyHeaders and
headerKeyEscape.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection
from typing import Final

from tetrapod.generic.http.peers import RESPONSE_HEADERS
from tetrapod.generic.http.request import HeaderList, Request
from tetrapod.generic.http.response_head import canonical
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.user import UserInfo

_HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_REPLACED: Final = _HOP_BY_HOP | {
    b"host",
    b"content-length",
    b"expect",
    b"authorization",
    b"x-forwarded-for",
    b"audit-id",
}
_REPLACED_WITH_LOCATION: Final = _REPLACED | {b"x-forwarded-uri", b"x-forwarded-host", b"x-forwarded-proto"}
DROPPED_FROM_PEERS: Final = _HOP_BY_HOP | {b"date", b"audit-id"}
"""Response headers of a peer service that are not passed to the client, because the aggregator writes its own."""
DROPPED_FROM_BACKENDS: Final = DROPPED_FROM_PEERS | RESPONSE_HEADERS
"""Response headers of other backends that are not passed to the client. They include those that only peer services may
set.
"""
DROPPED_FOR_BROWSERS: Final = DROPPED_FROM_BACKENDS | {
    b"access-control-" + name
    for name in (
        b"allow-credentials",
        b"allow-headers",
        b"allow-methods",
        b"allow-origin",
        b"expose-headers",
        b"max-age",
    )
}
"""Response headers of other backends that are not passed to clients which may be browsers. They include the CORS
headers, which a backend must not set for this server.
"""
_NOTHING: Final[frozenset[bytes]] = frozenset()
_REMOTE: Final = b"x-remote-"
_IDENTITY: Final = (_REMOTE, b"impersonate-")
_CHANGED_ON_THE_WAY: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]|\A[ \t]|[ \t]\Z")
_LONGEST_KEPT: Final = 2048
"""The most bytes of forwarded headers that are kept for later requests. A user may have a thousand groups."""
_TOKEN: Final = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def escape_header_key(key: str) -> str:
    """Return a key with `%`, and the characters that a header name cannot contain, percent-encoded."""
    return "".join(chr(byte) if byte in _TOKEN else f"%{byte:02X}" for byte in key.encode())


class ForwardedHeaders(HeaderList):
    """The headers of a forwarded request, with the encoded lines of all but the last one, which is the Audit-ID.

    Attributes:
        lines: the header lines, joined by CRLF.
    """

    __slots__ = ("lines",)

    def __init__(self, headers: HeaderList, lines: bytes) -> None:
        super().__init__(headers)
        self.lines = lines


class Unsendable(ValueError):
    """The error of a header value with characters that cannot be sent. The text is that of Go's net/http."""


def identity_headers(user: UserInfo) -> HeaderList:
    """Return the identity headers (X-Remote-*) of a user, in a new list.

    Raises:
        Unsendable: the backend would read another identity, because a value contains control characters, or begins or
            ends with spaces. A certificate's CN may be anything. Upstream sends such spaces.
    """
    headers = [*_plain_identity((user.name, user.uid, user.groups))]
    if user.extra:
        for key, values in user.extra.items():
            name = f"x-remote-extra-{escape_header_key(key)}".encode()
            headers += [_sendable(name, value) for value in values]
    return headers


@bounded(count=2048, size=4 << 20, largest=128 << 10)
def _plain_identity(user: tuple[str, str, tuple[str, ...]]) -> tuple[tuple[bytes, bytes], ...]:
    name, uid, groups = user
    ids = (_sendable(b"x-remote-uid", uid),) if uid else ()
    return (_sendable(b"x-remote-user", name), *ids, *(_sendable(b"x-remote-group", group) for group in groups))


def _sendable(header: bytes, text: str) -> tuple[bytes, bytes]:
    value = text.encode()
    if _CHANGED_ON_THE_WAY.search(value):
        raise Unsendable(f'net/http: invalid header field value for "{canonical(header)[:-2].decode()}"')
    return header, value


def forwarded_headers(
    headers: HeaderList, user: UserInfo, remote: str, audit_id: str, location: HeaderList | None = None
) -> HeaderList:
    """Return the request headers for a backend that trusts this server's identity headers, in a new list.

    Hop-by-hop headers, Host, framing, and the client's Authorization and identity headers are left out.

    Args:
        headers: the headers of the client.
        user: the user for the identity headers.
        remote: the client's address, which is appended to X-Forwarded-For; "" for none.
        audit_id: the Audit-ID header; "" for none.
        location: the X-Forwarded-Uri, -Host and -Proto headers, which replace those of the client; None passes the
            client's.

    Raises:
        Unsendable: the identity cannot be sent.
    """
    result = _without(headers, _REPLACED if location is None else _REPLACED_WITH_LOCATION, remote)
    result += identity_headers(user)
    if location is not None:
        result += location
    if audit_id:
        # The last one, because it is different in each request. A peer service thus recognizes the others
        # (http/known_heads.py).
        result.append((b"audit-id", audit_id.encode()))
    return result


def shared_headers(request: Request) -> HeaderList:
    """Return `forwarded_headers` of a request.

    For requests with the same head, of the same user, all but the Audit-ID are computed and encoded once.

    Raises:
        Unsendable: the identity cannot be sent.
    """
    head, user, audit_id = request.head, request.user, request.audit_id
    if head is None or not audit_id:
        return forwarded_headers(request.headers, user, request.remote, audit_id)
    known = head.derived.get(shared_headers)
    if known is None or known[0] is not request.headers or known[1] is not user or known[2] != request.remote:
        headers = forwarded_headers(request.headers, user, request.remote, "")
        lines = b"\r\n".join([b": ".join(header) for header in headers])
        known = (request.headers, user, request.remote, headers, lines)
        if len(lines) <= _LONGEST_KEPT:
            head.derived[shared_headers] = known
    forwarded = ForwardedHeaders(known[3], known[4])
    forwarded.append((b"audit-id", audit_id.encode()))
    return forwarded


def pass_through_headers(headers: HeaderList, remote: str) -> HeaderList:
    """Return the request headers for a backend that gets no identity headers, in a new list.

    Hop-by-hop headers, Host, framing, and the client's Authorization and identity headers are left out.

    Args:
        headers: the headers of the client.
        remote: the client's address, which is appended to X-Forwarded-For; "" for none.
    """
    return _without(headers, _REPLACED, remote)


def _without(headers: HeaderList, dropped: Collection[bytes], remote: str) -> HeaderList:
    listed = _NOTHING
    trailers = False
    result: HeaderList = []
    forwarded: list[bytes] = []
    for header in headers:
        name, value = header
        if name in dropped:
            if name == b"x-forwarded-for":
                forwarded.append(value)
            elif name == b"connection":
                listed |= _tokens(value)
            elif name == b"te":
                trailers = trailers or b"trailers" in value.lower()
        elif not name.startswith(_IDENTITY):
            result.append(header)
    if listed:
        result = [header for header in result if header[0] not in listed]
    if remote:
        forwarded.append(remote.encode())
    if forwarded:
        result.append((b"x-forwarded-for", b", ".join(forwarded)))
    if trailers:
        result.append((b"te", b"trailers"))
    return result


def returned_headers(headers: HeaderList, dropped: Collection[bytes] = DROPPED_FROM_BACKENDS) -> HeaderList:
    """Return the headers of a backend's response that are passed back to the client, in a new list.

    Headers that the backend's Connection header names are dropped too. Several Trailer headers become one. Identity
    headers (X-Remote-*) are passed back from peer services only, because a proxy in front of this server may take them
    for its own.

    Args:
        headers: the headers of the response.
        dropped: the names of the headers that are not passed back: DROPPED_FROM_PEERS for a peer service (core,
            extensions or auth), DROPPED_FOR_BROWSERS for any other backend whose clients may be browsers, else
            DROPPED_FROM_BACKENDS.
    """
    is_peer = dropped is DROPPED_FROM_PEERS
    listed = _NOTHING
    result: HeaderList = []
    announced: list[bytes] = []
    for header in headers:
        name = header[0]
        if name not in dropped:
            if is_peer or not name.startswith(_REMOTE):
                result.append(header)
        elif name == b"connection":
            listed |= _tokens(header[1])
        elif name == b"trailer":
            announced.append(header[1])
    if listed:
        result = [header for header in result if header[0] not in listed]
    if announced:
        result.append((b"trailer", b", ".join(announced)))
    return result


def forwarded_uri(path: str, prefix: str = "") -> str:
    """Return the X-Forwarded-Uri for a path that is already escaped: `prefix` and path, normalized.

    A slash at the end of the path is kept.
    """
    normalized = posixpath.normpath(f"{prefix}{path}")
    return f"/{normalized.lstrip('/')}" + ("/" if path.endswith("/") and normalized.strip("/") else "")


def returned_trailers(trailers: HeaderList) -> HeaderList:
    """Return the trailers that are passed back to the client, in a new list.

    Hop-by-hop headers and those that concern the framing or identity are dropped.
    """
    return [
        (name, value)
        for name, value in trailers
        if name not in DROPPED_FROM_PEERS and name != b"content-length" and not name.startswith(_REMOTE)
    ]


def upgrade_of(headers: HeaderList) -> bytes:
    """Return the protocol of a requested upgrade, such as b"websocket"; b"" if none is requested."""
    if not any(name == b"connection" and b"upgrade" in _tokens(value) for name, value in headers):
        return b""
    return next((value for name, value in headers if name == b"upgrade"), b"")


def _tokens(connection: bytes) -> frozenset[bytes]:
    return frozenset(token.strip().lower() for token in connection.split(b","))


def render_request(method: str, target: str, host: str, headers: HeaderList, framing: bytes) -> bytes:
    """Return the encoded head of a request.

    `target` is the path with the query, `host` the value of the Host header, and `framing` further complete header
    lines.
    """
    first = f"{method} {target} HTTP/1.1\r\nHost: {host}".encode("latin-1")
    if type(headers) is ForwardedHeaders:
        return b"\r\n".join((first, headers.lines, b": ".join(headers[-1]), framing + b"\r\n"))
    return b"\r\n".join((first, *[b": ".join(header) for header in headers], framing + b"\r\n"))
