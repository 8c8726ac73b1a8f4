"""The encodings in which values are stored, by their media types.

JSON is the encoding of everything that reads and writes objects (encoding.py); the others are converted at the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tetrapod.generic.storage import encoding
from tetrapod.machinery.json_pieces import loads

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
CBOR: Final = "application/cbor"


class StorageEncoding(NamedTuple):
    """An encoding of stored values other than JSON.

    Attributes:
        recognizes: returns whether a stored value is in this encoding.
        encode: converts the JSON of a stored object to this encoding.
    """

    recognizes: Callable[[bytes], bool]
    encode: Callable[[bytes], bytes]


def _as_protobuf(value: bytes) -> bytes:
    from tetrapod.generic.storage.protobuf_values import protobuf_of

    return protobuf_of(loads(value))


def _as_cbor(value: bytes) -> bytes:
    from tetrapod.machinery import cbor

    return cbor.encode(loads(value))


def _as_yaml(value: bytes) -> bytes:
    from tetrapod.machinery.serializer import yaml

    return yaml.encode(loads(value))


ENCODINGS: Final[Mapping[str, StorageEncoding | None]] = {
    JSON: None,
    YAML: StorageEncoding(encoding.is_yaml, _as_yaml),
    PROTOBUF: StorageEncoding(lambda value: value.startswith(encoding.PROTOBUF), _as_protobuf),
    CBOR: StorageEncoding(lambda value: value.startswith(encoding.CBOR), _as_cbor),
}
"""The encodings by media type; None for JSON, which needs no conversion."""


def encoded(media_type: str, value: bytes) -> bytes:
    """Return the JSON of a stored object in the encoding of a media type, which must be a key of `ENCODINGS`."""
    target = ENCODINGS[media_type]
    return value if target is None else target.encode(value)
