"""Errors of decoding, with the messages of Go's JSON decoder, because clients of kube-apiserver see those."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import orjson


class DecodeError(Exception):
    """A decoding error.

    Its text is upstream's, without the prefix `Pod in version "v1" cannot be handled as a Pod: `.
    """

    ends = False
    """Whether the error aborts decoding, as errors of a type's own unmarshaler do. After other errors Go's decoder
    continues and reports the first.
    """


class EndingError(DecodeError):
    """A decoding error that aborts decoding."""

    ends = True


class UnknownField(Exception):
    """Raised for a field that the struct does not have.

    Internal: `decode` catches it and then collects all unknown fields.
    """


class Mismatch(DecodeError):
    """A JSON value of the wrong type.

    The decoders of the enclosing structs add the path while the exception propagates.

    Args:
        value: the JSON value.
        wanted: the Go type that was expected.
        ends: whether the error aborts decoding.
    """

    def __init__(self, value: Any, wanted: str, *, ends: bool = False) -> None:
        super().__init__()
        self.ends = ends
        self.place: tuple[Any, Any] | None = None
        """The object and field name, or the list and index, that hold the value."""
        self._found = _name(value, wanted)
        self.value, self.wanted = value, wanted
        self._path: list[tuple[str, str]] = []  # pairs of definition and field, innermost first

    @property
    def named(self) -> str:
        """The expected type by its Go name."""
        return _names(*self._path[0]).get(self.wanted, self.wanted) if self._path else self.wanted

    @property
    def alone(self) -> str:
        """The error text if the value is decoded on its own, without an enclosing struct."""
        return f"json: cannot unmarshal {self._found} into Go value of type {self.wanted}"

    def under(self, definition: str, field: str) -> None:
        """Add the enclosing struct and the field to the path."""
        self._path.append((definition, field))

    def __str__(self) -> str:
        if not self._path:
            return self.alone
        definition = self._path[0][0]
        path = ".".join(_embedded(*step) for step in reversed(self._path))
        return (
            f"json: cannot unmarshal {self._found} into Go struct field {definition.rpartition('.')[2]}.{path} "
            f"of type {self.named}"
        )


def _embedded(definition: str, field: str) -> str:
    """Return the field with the embedded structs that it belongs to in Go.

    An example is `RuleWithOperations.Rule.apiGroups`.
    """
    path = _names(definition, field).get("")
    return f"{path}.{field}" if path else field


def _names(definition: str, field: str) -> dict[str, str]:
    """Return the Go names of a field's type by their plain form; see tools/generate_go_names.py."""
    return _go_names().get(definition, {}).get(field, {})


@cache
def _go_names() -> dict[str, dict[str, dict[str, str]]]:
    names: dict[str, dict[str, dict[str, str]]] = orjson.loads(
        files("tetrapod.machinery.types").joinpath("data/go_names.json").read_bytes()
    )
    return names


def _name(value: Any, wanted: str) -> str:
    """Return the JSON type of a value as Go's decoder names it. For integer types the name includes the number."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value}" if wanted.startswith(("int", "uint", "float", "time.Duration")) else "number"
    return {str: "string", list: "array", dict: "object"}.get(value.__class__, "null")
