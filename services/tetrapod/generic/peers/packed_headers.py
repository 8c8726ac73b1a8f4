"""What a service behind the front tells it beside its answer: JSON in a header, packed."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from tetrapod.generic.request import Response

_LIMIT: Final = 64 << 20
"""Bytes that a header may unpack to: objects are far smaller."""


def packed(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """`default` is orjson's: what becomes of a value that JSON has no form for."""
    return base64.b64encode(zlib.compress(orjson.dumps(value, default=default), 1))


def take_out(response: Response, header: bytes) -> list[Any]:
    """Remove the headers of a name from the response, and return their decoded values. Malformed values are ignored."""
    found = list(_unpacked(response, header))
    response.headers = [kept for kept in response.headers if kept[0] != header]
    return found


def _unpacked(response: Response, header: bytes) -> Iterator[Any]:
    for name, value in response.headers:
        if name == header:
            try:
                unpacking = zlib.decompressobj()
                unpacked = unpacking.decompress(base64.b64decode(value), _LIMIT)
                if unpacking.eof:
                    yield orjson.loads(unpacked)
            except (binascii.Error, zlib.error, orjson.JSONDecodeError):
                continue
