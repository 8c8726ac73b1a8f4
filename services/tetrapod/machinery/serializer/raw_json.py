"""JSON objects that keep their text, for runtime.RawExtension.

Go keeps such values as the bytes that it read, and compares those. Values that differ only in white space, in the form
of numbers, in duplicate fields, or in characters that Go's encoder would escape, are therefore different.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Any, Final

import msgspec
import orjson

from tetrapod.machinery.golang.json_numbers import as_go_writes, without_exponents
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.json import go_escaped, ordered

_TOKENS: Final = re.compile(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode

RawPath = tuple[str, ...]
"""The path of a RawExtension in an object. `EACH` selects all elements of a list."""
EACH: Final = "[]"
_MARK: Final = b"\0"
"""Marks where a text belongs in an encoded object. JSON does not contain this byte."""


class Verbatim(dict[str, Any]):
    """A decoded object that keeps its JSON text (`text`), because `json.encode` would produce another text.

    The text does not follow changes of the object. As in Go, `==` compares the texts. The text of an ordinary
    dictionary is that of Go's encoder.
    """

    text = ""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Verbatim):
            return self.text == other.text
        return isinstance(other, dict) and self.text.encode() == go_text(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def verbatim(value: Object, text: str) -> Verbatim:
    """Return a decoded object as a `Verbatim` with a JSON text."""
    kept = Verbatim(value)
    kept.text = text
    return kept


def with_text(value: Object, raw: bytes) -> Object:
    """Return a decoded object as a `Verbatim` if `json.encode` would not produce its JSON text, else as it is.

    Args:
        value: the object.
        raw: the JSON text.
    """
    if raw == _compacted(raw) == without_exponents(orjson.dumps(value)):
        return value
    return verbatim(value, raw.decode(errors="replace"))


def with_go_text(value: Object, *, sent: bool) -> Object:
    """Return a decoded object as a `Verbatim` if `json.encode` would not produce the text that Go gives it.

    An object that has a text already keeps it.

    Args:
        value: the object.
        sent: whether Go keeps its numbers as the client has sent them, such as `1.0`. Otherwise it encodes them again.
    """
    if isinstance(value, Verbatim):
        return value
    raw = orjson.dumps(value)
    text = go_escaped(raw if sent else as_go_writes(raw))
    return value if text == without_exponents(raw) else verbatim(value, text.decode())


def with_compact_text(value: Verbatim) -> Object:
    """Return an object with the text that Go's encoder makes of its present text, when it encodes a whole object."""
    return with_text(dict(value), _compacted(value.text.encode()))


def go_text(value: Object) -> bytes:
    """Return the JSON text of a decoded object as Go's encoder writes it, with the fields in their order."""
    return go_escaped(as_go_writes(orjson.dumps(value)))


def encode_texts(obj: Object) -> bytes:
    """Encode an object as JSON like `json.encode`, with the texts of `Verbatim` values as Go's encoder writes them.

    That is without white space, and with the characters escaped that Go escapes for HTML.
    """
    texts: list[bytes] = []

    def place(value: Any) -> Any:
        if not isinstance(value, Verbatim):
            return dict(value)
        texts.append(_compacted(value.text.encode()))
        return orjson.Fragment(_MARK)

    encoded = without_exponents(orjson.dumps(ordered(obj), default=place, option=orjson.OPT_PASSTHROUGH_SUBCLASS))
    if not texts:
        return encoded
    first, *others = encoded.split(_MARK)
    return b"".join((first, *chain.from_iterable(zip(texts, others, strict=True))))


def _compacted(raw: bytes) -> bytes:
    """Return JSON without white space, and with the characters escaped that Go escapes."""
    return go_escaped(_TOKENS.sub(rb"\1", raw))


def raw_text(value: Any) -> bytes:
    """Return the JSON text that Go keeps of a RawExtension with this value: the one that was sent, if it is known."""
    return value.text.encode() if isinstance(value, Verbatim) else go_text(value)


def stored_text(value: Any) -> bytes:
    """Return the text of a RawExtension with this value in the JSON of a stored object, in which 1.0 differs from 1."""
    return value.text.encode() if isinstance(value, Verbatim) else without_exponents(orjson.dumps(value))


def text_size(value: Any) -> int:
    """Return the number of bytes of `raw_text`."""
    return len(raw_text(value))


def remember(obj: Object, path: RawPath, body: bytes) -> None:
    """Replace the objects at a path by `Verbatim` where `json.encode` would not produce the text that the client sent.

    Values of other types are skipped. Nothing changes if the body is not valid UTF-8.

    Args:
        obj: the decoded body, which is modified.
        path: the path.
        body: the JSON text of the whole body.
    """
    try:
        _remember(obj, path, body)
    except (msgspec.DecodeError, KeyError):  # invalid UTF-8, which Go accepts
        return


def _remember(value: Any, path: RawPath, raw: bytes) -> None:
    step, rest = path[0], path[1:]
    if step == EACH:
        if isinstance(value, list) and value:
            for item, text in zip(value, _items(raw), strict=False):
                _remember(item, rest, bytes(text))
        return
    child = value.get(step) if isinstance(value, dict) else None
    if rest and isinstance(child, dict | list):
        _remember(child, rest, bytes(_members(raw)[step]))
    elif isinstance(child, dict):
        value[step] = with_text(child, bytes(_members(raw)[step]))


def carry(original: Any, copy: Any) -> None:
    """Make those objects of a copy `Verbatim` that are `Verbatim` in the original, in place.

    An object keeps the contents that it has in the copy, and gets the JSON text that it has in the original.

    Args:
        original: a dictionary or list.
        copy: a deep copy of it.
    """
    members = original.items() if isinstance(original, dict) else enumerate(original)
    for key, value in members:
        if isinstance(value, Verbatim):
            copy[key] = verbatim(copy[key], value.text)
        elif isinstance(value, dict | list):
            carry(value, copy[key])
