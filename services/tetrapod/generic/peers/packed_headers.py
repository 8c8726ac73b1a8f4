"""Response headers with compressed JSON, from a service to the aggregator in front of it."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from tetrapod.generic.request import Response

_LIMIT: Final = 64 << 20
"""The largest decompressed size of a header in bytes. Objects are far smaller."""


def pack(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """Encode a value as a header.

    Args:
        default: converts a value of a type that orjson does not support.
    """
    return base64.b64encode(zlib.compress(orjson.dumps(value, default=default), 1))


def take_out(response: Response, header: bytes) -> list[Any]:
    """Remove the headers of a name from the response, and return their decoded values. Malformed values are ignored."""
    values = list(_unpack(response, header))
    response.headers = [other for other in response.headers if other[0] != header]
    return values


def _unpack(response: Response, header: bytes) -> Iterator[Any]:
    for name, value in response.headers:
        if name == header:
            try:
                decompressor = zlib.decompressobj()
                data = decompressor.decompress(base64.b64decode(value), _LIMIT)
                if decompressor.eof:
                    yield orjson.loads(data)
            except (binascii.Error, zlib.error, orjson.JSONDecodeError):
                continue
