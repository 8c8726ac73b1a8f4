"""Parsing of PEM blocks as Go's encoding/pem does it. Text between blocks is ignored.

Upstream: Go's encoding/pem/pem.go, Decode.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final, NamedTuple

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"


class Block(NamedTuple):
    """One decoded PEM block.

    Attributes:
        type: the type in its first line, such as "CERTIFICATE".
        headers: whether it has headers.
        content: the decoded bytes.
    """

    type: str
    headers: bool
    content: bytes


def blocks(text: bytes) -> list[Block]:
    """Return the PEM blocks in a text, in order; blocks whose content is not valid Base64 are left out.

    The time is linear in the length of the text: each END line is compared with the last BEGIN line before it.
    """
    return list(_blocks(text))


def _blocks(text: bytes) -> Iterator[Block]:
    rest = 0
    while (end := text.find(_END, rest)) >= 0:
        begin = text.rfind(_BEGIN, rest, end)
        is_line = begin == rest or text[begin - 1 : begin] == b"\n"
        rest = trailer = end + len(_END)
        if begin < 0 or not is_line:
            continue
        first_line, at = _line(text, begin + len(_BEGIN))
        if not first_line.endswith(_DASHES):
            continue
        kind = first_line[: -len(_DASHES)]
        content_at = _after_headers(text, at)
        has_headers = content_at > at
        if content_at >= len(text) or trailer < content_at:
            return  # as in Go, lines with colons that go on behind the END line end the search
        closing = kind + _DASHES
        if (has_headers and end < content_at) or not text.startswith(closing, trailer):
            continue
        following, next_line = _line(text, trailer + len(closing))
        if following:
            continue
        encoded = text[content_at:end].translate(None, b" \t\r\n")
        if len(encoded) % 4:
            continue  # Python accepts padding that is too long
        try:
            content = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            continue
        yield Block(kind.decode(errors="replace"), has_headers, content)
        rest = next_line


def _after_headers(text: bytes, at: int) -> int:
    """Return the offset of the first line, at or after `at`, that does not contain a colon.

    The lines before it are headers. If all lines contain a colon, return the length of the text.
    """
    while at < len(text):
        line, following = _line(text, at)
        if b":" not in line:
            break
        at = following
    return at


def _line(text: bytes, at: int) -> tuple[bytes, int]:
    """Return the line that begins at `at`, without blanks at its end, and the offset of the next one."""
    end = text.find(b"\n", at)
    if end < 0:
        return text[at:].rstrip(b" \t"), len(text)
    return text[at:end].removesuffix(b"\r").rstrip(b" \t"), end + 1
