"""The static types of CEL, and their text in messages.

Types are immutable, and equal if their kind, name and parameters are.

Upstream: cel-go common/types/types.go and checker/format.go.
"""

from __future__ import annotations

from typing import Final, Literal

Kind = Literal[
    "any",
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "error",
    "int",
    "list",
    "map",
    "null",
    "opaque",
    "string",
    "struct",
    "timestamp",
    "type",
    "param",
    "uint",
]


class CelType:
    """A static type, with its type parameters (`params`), such as the element type of a list.

    `name` is upstream's run-time name (`google.protobuf.Timestamp`, `list`, `net.IP`). `str()` returns the text that
    the checker's messages show.

    Attributes:
        kind: the category of the type, such as "int", "list", "struct", "opaque" or "param".
    """

    __slots__ = ("_hash", "_shown", "kind", "name", "params")

    def __init__(self, kind: Kind, name: str, params: tuple[CelType, ...] = ()) -> None:
        self.kind: Kind = kind
        self.name = name
        self.params = params
        self._hash = hash((kind, name, params))
        self._shown: str | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, CelType) or self._hash != other._hash:
            return False
        return self.kind == other.kind and self.name == other.name and self.params == other.params

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self._shown is None:
            self._shown = _SHOWN.get(self.kind) or (
                f"{self.name}({', '.join(map(str, self.params))})" if self.params else self.name
            )
        return self._shown

    def __repr__(self) -> str:
        return f"CelType({self})"


_SHOWN: Final[dict[str, str]] = {
    "any": "any",
    "duration": "duration",
    "error": "!error!",
    "null": "null",
    "timestamp": "timestamp",
}

ANY: Final = CelType("any", "google.protobuf.Any")
BOOL: Final = CelType("bool", "bool")
BYTES: Final = CelType("bytes", "bytes")
DOUBLE: Final = CelType("double", "double")
DURATION: Final = CelType("duration", "google.protobuf.Duration")
DYN: Final = CelType("dyn", "dyn")
ERROR: Final = CelType("error", "error")
INT: Final = CelType("int", "int")
NULL: Final = CelType("null", "null_type")
STRING: Final = CelType("string", "string")
TIMESTAMP: Final = CelType("timestamp", "google.protobuf.Timestamp")
TYPE: Final = CelType("type", "type")
UINT: Final = CelType("uint", "uint")


def go_text(kind: CelType) -> str:
    """Return a type as Go prints it, by run-time names, which differ from those in the checker's messages.

    Upstream: common/types/types.go, String and DeclaredTypeName.
    """
    return f"{kind.name}({', '.join(map(go_text, kind.params))})" if kind.params else kind.name


def list_of(element: CelType) -> CelType:
    """Return the type of lists whose elements have the given type."""
    return CelType("list", "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the type of maps whose keys and values have the given types."""
    return CelType("map", "map", (key, value))


def object_type(name: str) -> CelType:
    """Return the object type with this name. The environment looks up its fields by the name (see `declarations`)."""
    return CelType("struct", name)


def opaque(name: str, *params: CelType) -> CelType:
    """Return a type without fields, such as `net.IP`.

    Args:
        name: its run-time name.
        params: its type parameters.
    """
    return CelType("opaque", name, params)


def optional_of(value: CelType) -> CelType:
    """Return the type of optionals that contain values of the given type."""
    return CelType("opaque", "optional_type", (value,))


def type_of(value: CelType) -> CelType:
    """Return the type of an expression that names the type `value`: for the expression `int`, this is `type(int)`."""
    return CelType("type", "type", (value,))


def type_param(name: str) -> CelType:
    """Return the type parameter with this name: a placeholder for any type in the signature of an overload."""
    return CelType("param", name)
