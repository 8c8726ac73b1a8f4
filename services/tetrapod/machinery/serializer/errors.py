"""What the decoders raise and return."""

from __future__ import annotations

from typing import Any, NamedTuple


class DecodeError(ValueError):
    """A body that is not JSON or YAML at all, in upstream's words."""


class NumberError(DecodeError):
    """Well-formed, but a number is beyond what a float can hold: upstream notices only when it fills the typed object."""


class Decoded(NamedTuple):
    """A decoded body and its duplicate fields, as strict decoding reports them."""

    obj: Any
    duplicates: list[str]


MAX_DEPTH = 250
"""Nesting that is let in. Upstream stops at 10,000 (and our texts say so); nothing real comes near this, and walkers can recurse."""
