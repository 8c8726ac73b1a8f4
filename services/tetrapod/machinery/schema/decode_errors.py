"""How decoding fails: in the words of Go's decoder, since that is what a client of the real server reads."""

from __future__ import annotations

from typing import Any


class DecodeError(Exception):
    """The text is upstream's, without the `Pod in version "v1" cannot be handled as a Pod: ` before it."""


class UnknownField(Exception):
    """A struct has no such field (internal: `decode` then looks for all of them)."""


class Mismatch(DecodeError):
    """A JSON value of the wrong type; the path is found on the way out."""

    def __init__(self, value: Any, wanted: str) -> None:
        super().__init__()
        self._found = _name(value, wanted)
        self._wanted = wanted
        self._struct = ""
        self._path: list[str] = []

    def under(self, definition: str, field: str) -> None:
        if not self._path:
            self._struct = definition.rpartition(".")[2]
        self._path.append(field)

    def __str__(self) -> str:
        if not self._path:
            return f"json: cannot unmarshal {self._found} into Go value of type {self._wanted}"
        path = ".".join(reversed(self._path))
        return f"json: cannot unmarshal {self._found} into Go struct field {self._struct}.{path} of type {self._wanted}"


def _name(value: Any, wanted: str) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value}" if wanted.startswith(("int", "float")) else "number"
    return {str: "string", list: "array", dict: "object"}.get(value.__class__, "null")
