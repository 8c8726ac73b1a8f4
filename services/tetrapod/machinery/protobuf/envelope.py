"""The envelope runtime.Unknown, and responses, lists and watch frames built from objects that are already encoded.

An encoded object is kept as an `item` (encoding.py): field 2, which is both the raw message of the envelope and an item
of a list, so that nothing is encoded twice.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go (Encode, RawSerializer); length-delimited
frames of framer.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.protobuf.decoding import MAGIC
from tetrapod.machinery.protobuf.encoding import body, item
from tetrapod.machinery.protobuf.messages import fields, message_of
from tetrapod.machinery.protobuf.wire import BYTES, delimited, tag, varint

_TAIL: Final = b"\x1a\x00\x22\x00"  # contentEncoding and contentType, which Go writes even if they are empty


def encode(obj: Object) -> bytes:
    """Return the response body for an object of a built-in kind.

    Raises:
        UnknownMessageError: the kind has no protobuf form.
    """
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    return envelope(api_version, kind, item(message_of(api_version, kind), obj))


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """Return a response body with an object: the prefix of Kubernetes' protobuf and a runtime.Unknown that contains it.

    Args:
        api_version: the `apiVersion` of the object.
        kind: its kind.
        raw: the object as `encoding.item` encodes it, which is the field `raw` of runtime.Unknown.
    """
    return _head((api_version, kind)) + raw + _TAIL


@bounded(count=1024, size=512 << 10, largest=2048)
def _head(type_: tuple[str, str]) -> bytes:
    api_version, kind = type_
    type_meta = delimited(b"\x0a", api_version.encode()) + delimited(b"\x12", kind.encode())
    return MAGIC + delimited(b"\x0a", type_meta)


def list_parts(
    api_version: str, kind: str, metadata: Object, items: Sequence[bytes]
) -> tuple[bytes, Sequence[bytes], bytes]:
    """Return the parts of the response body of a list: the bytes before its items, the items, and the bytes after them.

    Args:
        api_version: the `apiVersion` of the list.
        kind: the kind of the list.
        metadata: the metadata of the list.
        items: the objects, encoded by `encoding.item`.

    Raises:
        UnknownMessageError: the list has no protobuf form.
    """
    message = message_of(api_version, kind)
    head = body(message)({"metadata": metadata})
    number = next(field.number for field in fields(message) if field.name == "items")
    if (items_tag := tag(number, BYTES)) != b"\x12":  # in some older API versions, `items` has another number
        items = [items_tag + item[1:] for item in items]
    size = len(head) + sum(map(len, items))
    return _head((api_version, kind)) + b"\x12" + varint(size) + head, items, _TAIL


LENGTH_BYTES: Final = 4
"""The size of the length that precedes each watch event."""


def frame(event_type: str, enveloped: bytes) -> bytes:
    """Return a watch event, preceded by its length: a meta.v1 WatchEvent, which has no envelope of its own.

    Args:
        event_type: the type, such as ADDED.
        enveloped: the object as a response body (`envelope`).
    """
    event = delimited(b"\x0a", event_type.encode()) + delimited(b"\x12", delimited(b"\x0a", enveloped))
    return len(event).to_bytes(LENGTH_BYTES, "big") + event
