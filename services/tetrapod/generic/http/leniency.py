"""Requests that llhttp rejects and Go's server accepts: their heads are rewritten and parsed again."""

from __future__ import annotations

import re
from typing import Final

_METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ")
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]")


def replace_method(data: bytes) -> tuple[str, bytes] | None:
    """Return the method of a request, and the request with the method GET instead.

    Return None if the method is not a token.

    llhttp has a fixed list of methods. Go accepts any token, and the handlers of upstream reject unknown ones by their
    own rules.
    """
    match = _METHOD.match(data)
    return None if match is None else (match[1].decode(), b"GET" + data[match.end(1) :])


def escape_target(data: bytes) -> bytes | None:
    """Return the request with the bytes beyond ASCII of its first line percent-encoded, or None if the line is ASCII.

    llhttp accepts targets in ASCII only. Go treats other bytes as if they were percent-encoded.
    """
    line, newline, rest = data.partition(b"\n")
    escaped = _BEYOND_ASCII.sub(lambda match: b"%%%02X" % match[0][0], line)
    return None if escaped == line or not newline else escaped + newline + rest
