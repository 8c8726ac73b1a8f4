"""Headers on their way through the proxy: pure functions.

Upstream: net/http/httputil/reverseproxy.go, k8s.io/client-go/transport/round_trippers.go (SetAuthProxyHeaders, headerKeyEscape).
"""

from __future__ import annotations

import posixpath
import re
from typing import Final

from tetrapod.generic.among_services.names import ANSWERS
from tetrapod.generic.http.head import canonical
from tetrapod.generic.request import HeaderList
from tetrapod.generic.user import UserInfo

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
_OURS: Final = _HOP_BY_HOP | {b"host", b"content-length", b"expect", b"authorization", b"x-forwarded-for", b"audit-id"}
_FRONTS: Final = _HOP_BY_HOP | {b"date", b"audit-id"}
_STRANGERS: Final = _FRONTS | ANSWERS
_CORS: Final = frozenset(
    b"access-control-" + name
    for name in (b"allow-credentials", b"allow-headers", b"allow-methods", b"allow-origin", b"expose-headers", b"max-age")
)
_IDENTITY: Final = (b"x-remote-", b"impersonate-")
_CHANGED_ON_THE_WAY: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]|\A[ \t]|[ \t]\Z")
_TOKEN: Final = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def escape_header_key(key: str) -> str:
    """Percent-encode what a header name cannot hold, and `%`."""
    return "".join(chr(byte) if byte in _TOKEN else f"%{byte:02X}" for byte in key.encode())


class Unsendable(ValueError):
    """A header cannot hold what was to be said in it; in the words of Go's net/http."""


def identity_headers(user: UserInfo) -> HeaderList:
    """What the front proxy says of the user.

    Raises Unsendable for a user whom the backend would read as somebody else: whose name ends its header and begins another (a
    certificate's CN may be anything), or has spaces at its ends, which upstream sends all the same.
    """
    headers = [(b"x-remote-user", user.name.encode())]
    if user.uid:
        headers.append((b"x-remote-uid", user.uid.encode()))
    headers += [(b"x-remote-group", group.encode()) for group in user.groups]
    for key, values in user.extra.items():
        name = f"x-remote-extra-{escape_header_key(key)}".encode()
        headers += [(name, value.encode()) for value in values]
    for header, said in headers:
        if _CHANGED_ON_THE_WAY.search(said):
            raise Unsendable(f'net/http: invalid header field value for "{canonical(header)[:-2].decode()}"')
    return headers


def forwarded_headers(headers: HeaderList, user: UserInfo, remote: str, audit_id: str) -> HeaderList:
    """What is sent to a backend that believes us who asks. Raises Unsendable."""
    return passed_headers(headers, remote, audit_id) + identity_headers(user)


def passed_headers(headers: HeaderList, remote: str, audit_id: str) -> HeaderList:
    """A request's headers on their way on, but Host, Upgrade and the framing. What a client says of identities is never passed on."""
    listed = _connection_tokens(headers)
    kept: HeaderList = []
    forwarded: list[bytes] = []
    for name, value in headers:
        if name == b"x-forwarded-for":
            forwarded.append(value)
        elif name not in _OURS and name not in listed and not name.startswith(_IDENTITY):
            kept.append((name, value))
    if remote:
        forwarded.append(remote.encode())
    if forwarded:
        kept.append((b"x-forwarded-for", b", ".join(forwarded)))
    if audit_id:
        kept.append((b"audit-id", audit_id.encode()))
    if any(name == b"te" and b"trailers" in value.lower() for name, value in headers):
        kept.append((b"te", b"trailers"))
    return kept


def answer_headers(headers: HeaderList, *, of_service: bool = False) -> HeaderList:
    """What is passed back to the client. Date and Audit-ID are written by our own front; what services say to it is said by no other."""
    listed, dropped = _connection_tokens(headers), _FRONTS if of_service else _STRANGERS
    kept = [(name, value) for name, value in headers if name not in dropped and name not in listed]
    if announced := [value for name, value in headers if name == b"trailer"]:
        kept.append((b"trailer", b", ".join(announced)))
    return kept


def without_cors(headers: HeaderList) -> HeaderList:
    """Who may read an answer elsewhere is not for the backend to say."""
    return [(name, value) for name, value in headers if name not in _CORS]


def where_from(path: str, prefix: str = "") -> str:
    """X-Forwarded-Uri of a path that is escaped already."""
    joined = posixpath.normpath(f"{prefix}{path}")
    return f"/{joined.lstrip('/')}" + ("/" if path.endswith("/") and joined.strip("/") else "")


def answer_trailers(trailers: HeaderList) -> HeaderList:
    """What is passed back after the body, but what would be read as something else there."""
    return [(name, value) for name, value in trailers if name not in _FRONTS and name != b"content-length"]


def upgrade_of(headers: HeaderList) -> bytes:
    """The protocol that is asked for, empty where no upgrade is."""
    if b"upgrade" not in _connection_tokens(headers):
        return b""
    return next((value for name, value in headers if name == b"upgrade"), b"")


def _connection_tokens(headers: HeaderList) -> frozenset[bytes]:
    tokens: frozenset[bytes] = frozenset()
    for name, value in headers:
        if name == b"connection":
            tokens |= {token.strip().lower() for token in value.split(b",")}
    return tokens


def render_request(method: str, target: str, host: str, headers: HeaderList, framing: bytes) -> bytes:
    """The head of a request; `framing` is whole lines."""
    parts = [f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n".encode("latin-1")]
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    parts += (framing, b"\r\n")
    return b"".join(parts)
