"""runtime.Unknown, in which every object travels, and what is made of objects that are encoded already: answers, lists, watch frames.

An object's bytes are kept as an `item` (encoding.py): field 2, which is the raw message of the envelope as well as an item of a
list, so nothing is encoded twice. Follows protobuf.go of the serializer (Encode, RawSerializer) and framer.go's length-delimited frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.protobuf.decoding import MAGIC
from tetrapod.machinery.protobuf.encoding import body, item
from tetrapod.machinery.protobuf.messages import fields, message_of
from tetrapod.machinery.protobuf.wire import BYTES, delimited, tag, varint

_TAIL: Final = b"\x1a\x00\x22\x00"  # contentEncoding and contentType, which Go writes though they are empty


def encode(obj: Object) -> bytes:
    """An object of a built-in kind as a body.

    Raises:
        UnknownMessageError: its kind has no protobuf form.
    """
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    return envelope(api_version, kind, item(message_of(api_version, kind), obj))


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """A body of an `item`."""
    return _head(api_version, kind) + raw + _TAIL


@lru_cache(maxsize=512)
def _head(api_version: str, kind: str) -> bytes:
    type_meta = delimited(b"\x0a", api_version.encode()) + delimited(b"\x12", kind.encode())
    return MAGIC + delimited(b"\x0a", type_meta)


def list_parts(api_version: str, kind: str, metadata: Object, items: Sequence[bytes]) -> tuple[bytes, Sequence[bytes], bytes]:
    """What comes before the items of a list, the items, and what comes after."""
    message = message_of(api_version, kind)
    head = body(message)({"metadata": metadata})
    number = next(field.number for field in fields(message) if field.name == "items")
    if (wanted := tag(number, BYTES)) != b"\x12":  # a former version has another number
        items = [wanted + item[1:] for item in items]
    size = len(head) + sum(map(len, items))
    return _head(api_version, kind) + b"\x12" + varint(size) + head, items, _TAIL


def frame(event_type: str, enveloped: bytes) -> bytes:
    """A meta.v1 WatchEvent (not enveloped itself) behind its length."""
    event = delimited(b"\x0a", event_type.encode()) + delimited(b"\x12", delimited(b"\x0a", enveloped))
    return len(event).to_bytes(4, "big") + event
