"""Validation and parsing of request targets and Host headers, as in Go's net/http.

Upstream: url.ParseRequestURI; httpguts.ValidHostHeader
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.golang.query import unescape

_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ABSOLUTE: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")
_HOST: Final = re.compile(rb"[A-Za-z0-9!$%&'()*+,\-.:;=\[\]_~]*")


class Target(NamedTuple):
    """A parsed request target.

    `path` is percent-decoded; bytes that are not UTF-8 become surrogates (see `surrogateescape`). `raw_path` and
    `query` are as sent.
    """

    path: str
    raw_path: str
    query: str


@bounded(count=4096, size=2 << 20, largest=2048, weigh_entry=lambda target, _: 4 * len(target) + 400)
def parse_target(target: bytes) -> Target | None:
    """Parse a request target: the origin form, the absolute form (whose authority is ignored) or `*`.

    Returns:
        None for a target that Go answers with 400.
    """
    raw, _, query = target.partition(b"?")
    if not raw.startswith(b"/") and target != b"*":
        if (match := _ABSOLUTE.match(raw)) is None:
            return None
        raw = raw[match.end() :] or b"/"
    text = raw.decode("latin-1")
    if b"%" not in raw:
        return Target(raw.decode("utf-8", "surrogateescape"), text, query.decode("latin-1"))
    if _BAD_ESCAPE.search(raw):
        return None
    return Target(unescape(raw).decode("utf-8", "surrogateescape"), text, query.decode("latin-1"))


def escape_beyond_ascii(target: bytes) -> bytes:
    """Return a request target with the bytes beyond ASCII percent-encoded. Go treats them as if they were."""
    return target if target.isascii() else _BEYOND_ASCII.sub(lambda match: b"%%%02X" % match[0][0], target)


@bounded(count=256, size=64 << 10, largest=512)
def valid_host(host: bytes) -> bool:
    """Return whether the value of a Host header consists of valid characters; the empty value is valid."""
    return _HOST.fullmatch(host) is not None
