"""Headers on their way through the proxy: pure functions.

Upstream: net/http/httputil/reverseproxy.go, k8s.io/client-go/transport/round_trippers.go (SetAuthProxyHeaders, headerKeyEscape).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection
from functools import lru_cache
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
_WHEREABOUTS: Final = _OURS | {b"x-forwarded-uri", b"x-forwarded-host", b"x-forwarded-proto"}
FRONTS: Final = _HOP_BY_HOP | {b"date", b"audit-id"}
"""What is not passed back of the answer of a service of ours: our own front writes it."""
STRANGERS: Final = FRONTS | ANSWERS
"""The same of any other's answer: and what services say to the front."""
SITES: Final = STRANGERS | {
    b"access-control-" + name
    for name in (b"allow-credentials", b"allow-headers", b"allow-methods", b"allow-origin", b"expose-headers", b"max-age")
}
"""The same where the client may be a browser: who may read an answer elsewhere is not for a backend to say."""
_NOTHING: Final[frozenset[bytes]] = frozenset()
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
    headers = [*_plain_identity(user.name, user.uid, user.groups)]
    if user.extra:
        for key, values in user.extra.items():
            name = f"x-remote-extra-{escape_header_key(key)}".encode()
            headers += [_sendable(name, value) for value in values]
    return headers


@lru_cache(1024)
def _plain_identity(name: str, uid: str, groups: tuple[str, ...]) -> tuple[tuple[bytes, bytes], ...]:
    ids = (_sendable(b"x-remote-uid", uid),) if uid else ()
    return (_sendable(b"x-remote-user", name), *ids, *(_sendable(b"x-remote-group", group) for group in groups))


def _sendable(header: bytes, text: str) -> tuple[bytes, bytes]:
    said = text.encode()
    if _CHANGED_ON_THE_WAY.search(said):
        raise Unsendable(f'net/http: invalid header field value for "{canonical(header)[:-2].decode()}"')
    return header, said


def forwarded_headers(headers: HeaderList, user: UserInfo, remote: str, audit_id: str, where: HeaderList | None = None) -> HeaderList:
    """What is sent to a backend that believes us who asks; and where it goes, instead of what came of X-Forwarded-Uri and its like.

    Raises Unsendable.
    """
    kept = _passed(headers, _OURS if where is None else _WHEREABOUTS, remote, audit_id)
    kept += identity_headers(user)
    if where is not None:
        kept += where
    return kept


def passed_headers(headers: HeaderList, remote: str, audit_id: str) -> HeaderList:
    """A request's headers on their way on, but Host, Upgrade and the framing. What a client says of identities is never passed on."""
    return _passed(headers, _OURS, remote, audit_id)


def _passed(headers: HeaderList, dropped: Collection[bytes], remote: str, audit_id: str) -> HeaderList:
    listed = _NOTHING
    trailers = False
    kept: HeaderList = []
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
            kept.append(header)
    if listed:
        kept = [header for header in kept if header[0] not in listed]
    if remote:
        forwarded.append(remote.encode())
    if forwarded:
        kept.append((b"x-forwarded-for", b", ".join(forwarded)))
    if audit_id:
        kept.append((b"audit-id", audit_id.encode()))
    if trailers:
        kept.append((b"te", b"trailers"))
    return kept


def answer_headers(headers: HeaderList, dropped: Collection[bytes] = STRANGERS) -> HeaderList:
    """What is passed back to the client; `dropped` is FRONTS, STRANGERS or SITES."""
    listed = _NOTHING
    kept: HeaderList = []
    announced: list[bytes] = []
    for header in headers:
        name = header[0]
        if name not in dropped:
            kept.append(header)
        elif name == b"connection":
            listed |= _tokens(header[1])
        elif name == b"trailer":
            announced.append(header[1])
    if listed:
        kept = [header for header in kept if header[0] not in listed]
    if announced:
        kept.append((b"trailer", b", ".join(announced)))
    return kept


def where_from(path: str, prefix: str = "") -> str:
    """X-Forwarded-Uri of a path that is escaped already."""
    joined = posixpath.normpath(f"{prefix}{path}")
    return f"/{joined.lstrip('/')}" + ("/" if path.endswith("/") and joined.strip("/") else "")


def answer_trailers(trailers: HeaderList) -> HeaderList:
    """What is passed back after the body, but what would be read as something else there."""
    return [(name, value) for name, value in trailers if name not in FRONTS and name != b"content-length"]


def upgrade_of(headers: HeaderList) -> bytes:
    """The protocol that is asked for, empty where no upgrade is."""
    if not any(name == b"connection" and b"upgrade" in _tokens(value) for name, value in headers):
        return b""
    return next((value for name, value in headers if name == b"upgrade"), b"")


def _tokens(connection: bytes) -> frozenset[bytes]:
    return frozenset(token.strip().lower() for token in connection.split(b","))


def render_request(method: str, target: str, host: str, headers: HeaderList, framing: bytes) -> bytes:
    """The head of a request; `framing` is whole lines."""
    lines = [f"{method} {target} HTTP/1.1\r\nHost: {host}".encode("latin-1")]
    lines += [b": ".join(header) for header in headers]
    lines.append(framing + b"\r\n")
    return b"\r\n".join(lines)
