"""JSON objects that keep their text, for runtime.RawExtension.

Go keeps such values as the bytes that it read, and compares those. Values that differ only in white space, or in
characters that Go's encoder would escape, are therefore different.
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
    """A decoded object that keeps its JSON text (`text`), because Go's encoder would produce another text.

    The text does not follow changes of the object. `==` compares only the contents. Copies are plain dictionaries;
    `carry` gives them the text again.
    """

    text = ""


def remember(obj: Object, name: str, body: bytes) -> None:
    """Replace `obj[name]` by a `Verbatim` if Go's encoder would not produce the text that the client sent.

    Nothing changes if the member is missing or not an object, or if the body is not valid UTF-8.

    Args:
        obj: the decoded body.
        name: a member of the body's outermost object.
        body: the JSON text of the whole body.
    """
    value = obj.get(name)
    if not isinstance(value, dict):
        return
    try:
        raw = bytes(_members(body)[name])
    except msgspec.DecodeError:  # invalid UTF-8, which Go accepts
        return
    obj[name] = with_text(value, raw)


def with_text(value: Object, raw: bytes) -> Object:
    """Return a decoded object as a `Verbatim` if Go's encoder would not produce its JSON text, else as it is.

    Args:
        value: the object.
        raw: the JSON text.
    """
    if raw == go_escaped(_TOKENS.sub(rb"\1", raw)):
        return value
    verbatim = Verbatim(value)
    verbatim.text = raw.decode(errors="replace")
    return verbatim


def carry(obj: Object, copy: Object) -> Object:
    """Make those members of a copied object `Verbatim` that are `Verbatim` in the original, and return the copy.

    A member keeps the contents that it has in the copy, and gets the JSON text that it has in the original.

    Args:
        obj: the original.
        copy: the copy, which must have these members. It is modified and returned.
    """
    for name, value in obj.items():
        if isinstance(value, Verbatim):
            copy[name] = verbatim = Verbatim(copy[name])
            verbatim.text = value.text
    return copy
