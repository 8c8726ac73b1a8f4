"""`Verbatim`: an object of any shape that remembers how it was written.

Go keeps such values (runtime.RawExtension) as the bytes that it read, and compares those: spaces between tokens, and characters that
its own encoder would have escaped, make another value.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.json import go_escaped

_TOKENS: Final = re.compile(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Verbatim(dict[str, Any]):
    """`text` is not what Go would write of it."""

    text = ""


def remember(obj: Object, name: str, body: bytes) -> None:
    """Have a member of a decoded body know its text, if Go's encoder would change it."""
    value = obj.get(name)
    if not isinstance(value, dict):
        return
    try:
        raw = bytes(_members(body)[name])
    except msgspec.DecodeError:  # no UTF-8, which Go reads too
        return
    if raw != go_escaped(_TOKENS.sub(rb"\1", raw)):
        obj[name] = kept = Verbatim(value)
        kept.text = raw.decode(errors="replace")


def carry(obj: Object, copy: Object) -> Object:
    """Returns `copy`, of which members remember what those of `obj` do."""
    for name, value in obj.items():
        if isinstance(value, Verbatim):
            copy[name] = kept = Verbatim(copy[name])
            kept.text = value.text
    return copy
