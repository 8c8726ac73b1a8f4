"""Request targets and Host headers, checked and taken apart as Go's net/http does (url.ParseRequestURI, httpguts.ValidHostHeader)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ABSOLUTE: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
_HOST: Final = re.compile(rb"[A-Za-z0-9!$%&'()*+,\-.:;=\[\]_~]*")


class Target(NamedTuple):
    """`path` is percent-decoded; bytes that are no UTF-8 stay in it as surrogates (see `surrogateescape`)."""

    path: str
    raw_path: str
    query: str


@lru_cache(maxsize=2048)
def parse_target(target: bytes) -> Target | None:
    """Origin form, absolute form (whose authority is ignored) or `*`; None for what Go answers 400."""
    raw, _, query = target.partition(b"?")
    if not raw.startswith(b"/") and raw != b"*":
        if (match := _ABSOLUTE.match(raw)) is None:
            return None
        raw = raw[match.end() :] or b"/"
    text = raw.decode("latin-1")
    if b"%" not in raw:
        return Target(raw.decode("utf-8", "surrogateescape"), text, query.decode("latin-1"))
    if _BAD_ESCAPE.search(raw):
        return None
    return Target(unquote_to_bytes(raw).decode("utf-8", "surrogateescape"), text, query.decode("latin-1"))


@lru_cache(maxsize=256)
def valid_host(host: bytes) -> bool:
    return _HOST.fullmatch(host) is not None
