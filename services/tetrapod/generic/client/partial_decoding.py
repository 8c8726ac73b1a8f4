"""Partial decoding of responses: fields that the caller does not need never become Python objects.

The schemas of CRDs are an example of such fields. The fields are given by a `msgspec.Struct` whose optional fields
default to UNSET; the results are plain dictionaries.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from tetrapod.machinery.gvk import Object

STATUS = frozenset({"ERROR", "BOOKMARK"})
"""Types of events whose object is not of the watched resource."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


@lru_cache(maxsize=64)
def _list_decoder(only: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    shape = msgspec.defstruct("PartlyList", [("metadata", _ListMeta), ("items", list[only] | None, None)])  # type: ignore[valid-type]
    return msgspec.json.Decoder(shape)


@lru_cache(maxsize=64)
def _event_decoder(only: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(msgspec.defstruct("PartlyEvent", [("type", str), ("object", only)]))


def decode_list(only: type[msgspec.Struct], response: bytes) -> Object:
    """Decode a list response to a dictionary whose items have only the fields of `only`.

    Besides the items, the dictionary has only metadata.resourceVersion and metadata.continue of the list.

    If a field of an item is missing or does not have the type that `only` declares, the whole response is decoded. The
    caller must then check each item.

    Raises:
        ValueError: the response is not JSON.
    """
    decoded: Object
    try:
        decoded = msgspec.to_builtins(_list_decoder(only).decode(response))
    except msgspec.ValidationError:
        decoded = msgspec.json.decode(response)
    return decoded


def decode_event(only: type[msgspec.Struct], line: bytes) -> Object:
    """Decode one line of a watch response to a dictionary whose object has only the fields of `only`.

    The object is decoded completely if the event is an ERROR or BOOKMARK, or if a field is missing or does not have the
    type that `only` declares. The caller must check such an object.

    Raises:
        ValueError: the line is not JSON.
    """
    event: Object
    try:
        event = msgspec.to_builtins(_event_decoder(only).decode(line))
        complete = event["type"] in STATUS
    except msgspec.ValidationError:
        complete = True
    if complete:
        event = msgspec.json.decode(line)
    return event
