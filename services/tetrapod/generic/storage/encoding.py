"""The stored form of objects, and the insertion of resourceVersion into it.

The stored form is JSON with kind, apiVersion and metadata first and without metadata.resourceVersion. The served form
is the same bytes with `"resourceVersion":"N",` inserted directly after `"metadata":{`. Values that another server
wrote (a stock kube-apiserver on the same etcd), and values in protobuf, CBOR or YAML, are normalized into this form
when they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import orjson

from tetrapod.generic.storage.unreadable import ENCRYPTED, NOT_FOR_IDENTITY, NotTransformable
from tetrapod.machinery.depth import STORED_DEPTH
from tetrapod.machinery.golang.json_numbers import without_exponents
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.json_pieces import loads

_UNSTORED: Final = frozenset({"resourceVersion", "selfLink"})
HEAD: Final = re.compile(rb'\{"(?:kind|apiVersion)":"[^"\\]*","(?:kind|apiVersion)":"[^"\\]*","metadata":\{')


PROTOBUF: Final = b"k8s\0"
"""The first bytes of every value in protobuf."""
CBOR: Final = b"\xd9\xd9\xf7"
"""The first bytes of every value in CBOR."""


_skip = msgspec.json.Decoder(msgspec.Raw).decode
"""Parses JSON without making objects of it (measured: 3 µs for 2 kB, and 16 to decode it)."""


class CorruptObject(Exception):
    """A stored value that cannot be decoded, is not an object, or has a malformed kind, apiVersion or metadata.

    Upstream: "unable to decode"
    """


def encode(obj: Object, api_version: str, kind: str, dumps: Callable[[Any], bytes] = orjson.dumps) -> bytes:
    """Return the JSON bytes to store for `obj`, without resourceVersion and selfLink. `obj` is not modified.

    Args:
        api_version: used if the object has no apiVersion.
        kind: used if the object has no kind.
        dumps: encodes JSON; for a large object in a thread, `json_pieces.dumps`.
    """
    stored: Object = {
        "kind": obj.get("kind") or kind,
        "apiVersion": obj.get("apiVersion") or api_version,
        "metadata": {},
    }
    stored.update(obj)
    metadata = obj.get("metadata") or {}
    if not _UNSTORED.isdisjoint(metadata):
        metadata = {name: value for name, value in metadata.items() if name not in _UNSTORED}
    stored["metadata"] = metadata
    return without_exponents(dumps(stored))


def splice(stored: bytes, revision: int) -> bytes:
    """Return the served bytes of a stored value: its JSON with `revision` as metadata.resourceVersion.

    The value may be JSON, CBOR or protobuf.

    Raises:
        CorruptObject: the value cannot be decoded, is not an object, or its kind, apiVersion or metadata is malformed.
        NotTransformable: the value is encrypted, but no encryption is configured for the resource.
    """
    head = HEAD.match(stored)
    if head is None:
        stored = _normalized(stored)
        head = HEAD.match(stored)
        if head is None:
            raise CorruptObject("a stored value has no valid kind, apiVersion or metadata")
    at = head.end()
    if stored.endswith(b"\n"):  # kube-apiserver's encoder ends every value with a newline
        stored = stored[:-1]
    comma = b"" if stored[at : at + 1] == b"}" else b","
    return b'%b"resourceVersion":"%d"%b%b' % (stored[:at], revision, comma, stored[at:])


def check_json(stored: bytes) -> None:
    """Check that a stored value is valid JSON in UTF-8, without decoding it. Values in other encodings are not checked.

    Raises:
        CorruptObject: the value is malformed JSON.
    """
    if not stored.startswith(b"{"):
        return
    try:
        _skip(stored)
        if not stored.isascii():
            stored.decode()
    except ValueError as error:
        raise CorruptObject(f"a stored value is not a JSON object: {error}") from error


def divided(raw: bytes) -> tuple[bytes, bytes]:
    """Split the JSON of an object, as `splice` returns it, in two: the type, and the rest from `"metadata"` on.

    The type is `{"kind":…,"apiVersion":…,`; it is empty for an object without metadata.
    """
    at = max(raw.find(b'"metadata":'), 0)
    return raw[:at], raw[at:]


def respliced(raw: bytes, old: int, new: int) -> bytes:
    """Return the JSON of an object, as `splice` returns it, with the resourceVersion `new` in place of `old`."""
    head = HEAD.match(raw)
    assert head is not None
    behind = head.end() + len(b'"resourceVersion":"%d"' % old)
    return b'%b"resourceVersion":"%d"%b' % (raw[: head.end()], new, raw[behind:])


def as_json(stored: bytes) -> bytes:
    """Return the JSON bytes to store for a stored object in any encoding: JSON, CBOR, protobuf or YAML.

    They lack metadata.resourceVersion and selfLink, as all stored objects.

    Raises:
        ValueError: the value cannot be decoded.
        AttributeError, TypeError: it is not an object.
    """
    obj = _object_in(stored)
    return encode(obj, str(obj.get("apiVersion", "")), str(obj.get("kind", "")))


def is_yaml(stored: bytes) -> bool:
    """Return whether a stored value is in YAML, because it is neither encrypted nor in one of the other encodings."""
    return not stored.startswith((PROTOBUF, CBOR, ENCRYPTED)) and stored.lstrip()[:1] != b"{"


def _object_in(stored: bytes) -> Object:
    obj: Object
    if stored.startswith(PROTOBUF):
        from tetrapod.generic.storage.protobuf_values import object_of

        obj = object_of(stored)
    elif stored.startswith(CBOR):
        from tetrapod.machinery import cbor

        obj = cbor.decode(stored, STORED_DEPTH + 1)  # with the tag of self-described CBOR
    elif is_yaml(stored):
        from tetrapod.machinery.serializer import yaml

        obj = yaml.decode(stored).obj
    else:
        obj = loads(stored)
    return obj


def _normalized(stored: bytes) -> bytes:
    if stored.startswith(ENCRYPTED):
        raise NotTransformable(NOT_FOR_IDENTITY)
    try:
        return as_json(stored)
    except (ValueError, AttributeError, TypeError) as error:
        raise CorruptObject(f"a stored value is not a JSON object: {error}") from error
