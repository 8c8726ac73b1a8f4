"""The error of strict decoding of CBOR, which names an unknown field only by its index in its map.

Upstream: github.com/fxamacker/cbor, UnknownFieldError
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tetrapod.machinery.field import child, index


def strict_error(value: Any, unknown: Collection[str]) -> str:
    """Return the error text of strict decoding.

    Args:
        value: the decoded body, with its members in their order.
        unknown: the paths of the unknown fields (`spec.containers[0].img`); there is at least one.
    """
    return f"cbor: found unknown field at map element index {_first(value, '', frozenset(unknown)) or 0}"


def _first(value: Any, path: str, unknown: frozenset[str]) -> int | None:
    """Return the index, within its map, of the unknown field that upstream reports; None if the value has none.

    Unknown fields of a map precede those of the values in it.

    Args:
        value: the body, or a value in it.
        path: the field path of the value.
        unknown: the paths of all unknown fields of the body.
    """
    if isinstance(value, dict):
        places = [child(path, name) for name in value]
        own = next((place for place, at in enumerate(places) if at in unknown), None)
        if own is not None:
            return own
        parts = list(zip(value.values(), places, strict=True))
    elif isinstance(value, list):
        parts = [(item, index(path, place)) for place, item in enumerate(value)]
    else:
        return None
    return next((found for part, at in parts if (found := _first(part, at, unknown)) is not None), None)
