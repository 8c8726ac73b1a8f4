"""The errors of the decoders of JSON and YAML, and their result type."""

from __future__ import annotations

from typing import Any, NamedTuple


class DecodeError(ValueError):
    """The error for a body that cannot be decoded, such as invalid JSON, YAML or protobuf. The text is upstream's."""


class NumberError(DecodeError):
    """The error for well-formed JSON with a number that does not fit a float64.

    Upstream detects it only when it decodes the number into a typed object.
    """


class Decoded(NamedTuple):
    """A decoded body.

    Attributes:
        obj: the decoded value; any JSON value.
        duplicates: the text of each duplicate field, as strict decoding reports it; [] if every field occurs once.
    """

    obj: Any
    duplicates: list[str]
