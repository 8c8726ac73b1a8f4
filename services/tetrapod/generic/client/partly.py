"""Answers read in part: what a caller does not ask for never becomes an object (schemas of definitions, for one).

The parts are said by a `msgspec.Struct`, whose optional fields default to UNSET; what comes of it are plain dictionaries.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from tetrapod.machinery.gvk import Object

STATUS = frozenset({"ERROR", "BOOKMARK"})
"""Types of events whose object is another."""


class _Type(msgspec.Struct):
    type: str


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


_decode_type = msgspec.json.Decoder(_Type).decode


@lru_cache(maxsize=64)
def _list_decoder(only: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    shape = msgspec.defstruct("PartlyList", [("metadata", _ListMeta), ("items", list[only] | None, None)])  # type: ignore[valid-type]
    return msgspec.json.Decoder(shape)


@lru_cache(maxsize=64)
def _event_decoder(only: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(msgspec.defstruct("PartlyEvent", [("type", str), ("object", only)]))


def list_of(only: type[msgspec.Struct], answer: bytes) -> Object:
    """Raises ValueError."""
    found: Object = msgspec.to_builtins(_list_decoder(only).decode(answer))
    return found


def event_of(only: type[msgspec.Struct], line: bytes) -> Object:
    """Raises ValueError."""
    found: Object
    if _decode_type(line).type in STATUS:
        found = msgspec.json.decode(line)
    else:
        found = msgspec.to_builtins(_event_decoder(only).decode(line))
    return found
