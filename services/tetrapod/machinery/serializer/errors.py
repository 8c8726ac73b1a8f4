"""The errors and the result type of the decoders."""

from __future__ import annotations

from typing import Any, NamedTuple


class DecodeError(ValueError):
    """A body that is not valid JSON or YAML. The text is upstream's."""


class NumberError(DecodeError):
    """A well-formed body with a number that does not fit a float64.

    Upstream detects it only when it fills the typed object.
    """


class Decoded(NamedTuple):
    """A decoded body and its duplicate fields, as strict decoding reports them."""

    obj: Any
    duplicates: list[str]
