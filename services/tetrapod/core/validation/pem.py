"""Parsing of PEM blocks as Go's encoding/pem does it. Text between blocks is ignored."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, NamedTuple

_BLOCK: Final = re.compile(
    rb"^-----BEGIN ([^\r\n]*?)-----[ \t]*\r?\n(.*?)^-----END \1-----[ \t]*\r?$", re.DOTALL | re.MULTILINE
)
_HEADER: Final = re.compile(rb"^[^\r\n:]+:[^\r\n]*\r?\n", re.MULTILINE)


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
    """Return the PEM blocks in a text, in order; blocks whose content is not valid Base64 are left out."""
    decoded = []
    for match in _BLOCK.finditer(text):
        body = match[2]
        headers = _HEADER.match(body) is not None
        try:
            content = base64.b64decode(b"".join((_HEADER.sub(b"", body) if headers else body).split()), validate=True)
        except binascii.Error:
            continue
        decoded.append(Block(match[1].decode(errors="replace"), headers, content))
    return decoded
