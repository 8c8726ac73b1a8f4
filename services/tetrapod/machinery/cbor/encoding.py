"""Encoding of JSON values as CBOR.

Strings are byte strings, members are sorted by their encoded names, and numbers have their shortest form, so that
equal values have equal bytes. Responses begin with another member each time (`shuffled`), because upstream's are not
deterministic either and no client may depend on an order.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/cbor/internal/modes/encode.go; collections.go
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any, Final

from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.gvk import Object

MAGIC: Final = b"\xd9\xd9\xf7"
"""The tag of self-described CBOR, with which every body and every stored value begins."""

_INT64: Final = 1 << 63
_UNSIGNED: Final = 0x00
_NEGATIVE: Final = 0x20
_BYTES: Final = 0x40
_ARRAY: Final = 0x80
_MAP: Final = 0xA0


def _short_heads(major: int) -> list[bytes]:
    return [bytes((major | n,)) for n in range(24)] + [bytes((major | 24, n)) for n in range(24, 256)]


_SHORT_HEADS: Final = {major: _short_heads(major) for major in (_UNSIGNED, _NEGATIVE, _BYTES, _ARRAY, _MAP)}
_SHORT_BYTES: Final = _SHORT_HEADS[_BYTES]


def _head(major: int, argument: int) -> bytes:
    """Return the head of a data item: its type and its length or number.

    Raises:
        OverflowError: the argument exceeds 64 bits.
    """
    if argument < 256:
        return _SHORT_HEADS[major][argument]
    size = 1 if argument < 1 << 16 else 2 if argument < 1 << 32 else 3
    return bytes((major | 24 + size,)) + argument.to_bytes(1 << size, "big")


@bounded(count=4096, size=1 << 20, largest=1024)
def _name(name: str) -> bytes:
    """Return the name of an object's member as CBOR: a byte string, as upstream writes strings.

    Raises:
        UnicodeEncodeError: the name is not valid UTF-8.
    """
    encoded = name.encode()
    return _head(_BYTES, len(encoded)) + encoded


def _item(value: Any) -> bytes:
    """Return a JSON value as a CBOR data item, without the tag of self-described CBOR.

    Raises:
        UnicodeEncodeError: a string is not valid UTF-8.
    """
    kind = type(value)
    if kind is str:
        encoded: bytes = value.encode()
        size = len(encoded)
        return (_SHORT_BYTES[size] if size < 256 else _head(_BYTES, size)) + encoded
    if isinstance(value, dict):
        return _head(_MAP, len(value)) + b"".join(members(value))
    if isinstance(value, list | tuple):
        return _head(_ARRAY, len(value)) + b"".join([_item(item) for item in value])
    if value is None:
        return b"\xf6"
    if kind is bool:
        return b"\xf5" if value else b"\xf4"
    if kind is float:
        return _float(value)
    if not -_INT64 <= value < _INT64:  # JSON's text of a float without a fraction
        return _float(float(value))
    return _head(_UNSIGNED, value) if value >= 0 else _head(_NEGATIVE, -1 - value)


def _float(value: float) -> bytes:
    for head, form in ((b"\xf9", ">e"), (b"\xfa", ">f")):
        try:
            packed = struct.pack(form, value)
        except OverflowError:
            continue
        if struct.unpack(form, packed)[0] == value:
            return head + packed
    return b"\xfb" + struct.pack(">d", value)


def members(obj: Object) -> list[bytes]:
    """Return the members of an object as CBOR, each its name followed by its value, sorted by their encoded names.

    Raises:
        UnicodeEncodeError: a name or another string is not valid UTF-8.
    """
    named = sorted([(_name(name), value) for name, value in obj.items()], key=_by_name)
    return [name + _item(value) for name, value in named]


def _by_name(member: tuple[bytes, Any]) -> bytes:
    return member[0]


def encode(value: Any) -> bytes:
    """Return a JSON value as self-described CBOR, with sorted members: equal values give equal bytes.

    Raises:
        UnicodeEncodeError: a string is not valid UTF-8.
    """
    return MAGIC + _item(value)


def shuffled(value: Any) -> bytes:
    """Return a JSON value as self-described CBOR for a response.

    An object begins with a random one of its members, so that no client relies on their order, as upstream.
    """
    return rotated(members(value)) if isinstance(value, dict) else encode(value)


def rotated(encoded: Sequence[bytes]) -> bytes:
    """Return an object as self-described CBOR that begins with a random one of its members.

    Args:
        encoded: the result of `members`.
    """
    start = int(random.random() * len(encoded))
    return b"".join((MAGIC, _head(_MAP, len(encoded)), *encoded[start:], *encoded[:start]))


def event(event_type: str, obj: bytes) -> bytes:
    """Return a watch event as one item of a CBOR sequence. It begins at random with `type` or with `object`.

    Args:
        event_type: the type, such as ADDED.
        obj: the object in CBOR, as `encode`, `shuffled` or `rotated` returns it.
    """
    return rotated([_name("type") + _item(event_type), _name("object") + obj])
