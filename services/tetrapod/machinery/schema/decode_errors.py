"""How decoding fails: in the words of Go's decoder, since that is what a client of the real server reads."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import orjson


class DecodeError(Exception):
    """The text is upstream's, without the `Pod in version "v1" cannot be handled as a Pod: ` before it."""

    ends = False
    """Whether a type's own unmarshaler says so, which ends the decoding; after other mistakes Go's decoder goes on and tells the first."""


class EndingError(DecodeError):
    ends = True


class UnknownField(Exception):
    """A struct has no such field (internal: `decode` then looks for all of them)."""


class Mismatch(DecodeError):
    """A JSON value of the wrong type; the path is found on the way out."""

    def __init__(self, value: Any, wanted: str, *, ends: bool = False) -> None:
        super().__init__()
        self.ends = ends
        self.place: tuple[Any, Any] | None = None
        """The object and its field, or the list and its index, under which the value was found."""
        self._found = _name(value, wanted)
        self.value, self.wanted = value, wanted
        self._path: list[tuple[str, str]] = []  # definitions and fields of them, innermost first

    @property
    def named(self) -> str:
        """The wanted type by its Go name."""
        return _names(*self._path[0]).get(self.wanted, self.wanted) if self._path else self.wanted

    @property
    def alone(self) -> str:
        """The text where the value is all that is decoded."""
        return f"json: cannot unmarshal {self._found} into Go value of type {self.wanted}"

    def under(self, definition: str, field: str) -> None:
        self._path.append((definition, field))

    def __str__(self) -> str:
        if not self._path:
            return self.alone
        definition = self._path[0][0]
        path = ".".join(_embedded(*step) for step in reversed(self._path))
        return f"json: cannot unmarshal {self._found} into Go struct field {definition.rpartition('.')[2]}.{path} of type {self.named}"


def _embedded(definition: str, field: str) -> str:
    """The field under the structs that embed it: `RuleWithOperations.Rule.apiGroups`."""
    path = _names(definition, field).get("")
    return f"{path}.{field}" if path else field


def _names(definition: str, field: str) -> dict[str, str]:
    """Names of a field's type as Go has them, by their plain form; see tools/generate_go_names.py."""
    return _go_names().get(definition, {}).get(field, {})


@cache
def _go_names() -> dict[str, dict[str, dict[str, str]]]:
    names: dict[str, dict[str, dict[str, str]]] = orjson.loads(
        files("tetrapod.machinery.types").joinpath("data/go_names.json").read_bytes()
    )
    return names


def _name(value: Any, wanted: str) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value}" if wanted.startswith(("int", "uint", "float", "time.Duration")) else "number"
    return {str: "string", list: "array", dict: "object"}.get(value.__class__, "null")
