"""Run-time values of CEL, and those that are made when they are first used.

JSON as it was decoded is used as it is: None, bool, int (int64), float, str, list, dict; bytes are `bytes`, types are `CelType`.
Upstream: cel-go common/types; k8s.io/apiserver/pkg/cel/lazy and mutation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.types import CelType
from tetrapod.machinery.gofloat import go_float

NO_OVERLOAD: Final = "no such overload"


def no_such_overload() -> EvaluationError:
    return EvaluationError(NO_OVERLOAD)


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


class Duration:
    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and other.ns == self.ns

    def __hash__(self) -> int:
        return hash(("duration", self.ns))


class Timestamp:
    """Nanoseconds since 1970, UTC."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and other.ns == self.ns

    def __hash__(self) -> int:
        return hash(("timestamp", self.ns))


class Optional:
    """`NONE` is the empty one."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


NONE: Final = Optional(None)


class Special:
    """A value of a library's own type: an address, a quantity, an authorizer."""

    __slots__ = ()
    cel_type: ClassVar[CelType]

    def equals(self, other: Any) -> bool:
        raise NotImplementedError

    def cel_size(self) -> int:
        return 1


class CorrelatedList(list[Any]):
    """A list whose order does not matter: a set, or a map by some keys of its elements."""

    __slots__ = ()

    def equals(self, other: list[Any]) -> bool:
        raise NotImplementedError

    def merged(self, other: list[Any]) -> list[Any]:
        """What `+` gives."""
        raise NotImplementedError


class ObjectLike:
    """A map whose entries are found out on demand: `find` raises KeyError; `__iter__` gives the keys."""

    __slots__ = ()

    def find(self, key: Any) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class Lazy:
    """A binding that is made at its first use (`Lazy(lambda: …)`) and kept for the evaluation."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class LazyFields(ObjectLike):
    """An object whose fields are made at first use and kept: `variables` of a policy.

    A function may raise EvaluationError: so does every use of its field.
    """

    __slots__ = ("_made", "functions", "type_name")

    def __init__(self, type_name: str, functions: Mapping[str, Callable[[], Any]]) -> None:
        self.type_name = type_name
        self.functions = functions
        self._made: dict[str, Any] = {}

    def find(self, key: Any) -> Any:
        if key not in self._made:
            self._made[key] = self.functions[key]()
        return self._made[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)


class StructValue(ObjectLike):
    """What `Object.spec{…}` or `JSONPatch{…}` makes: a type's name and the given fields, which are values themselves.

    `json_values.json_value` turns it into JSON.
    """

    __slots__ = ("fields", "type_name")

    def __init__(self, type_name: str, fields: dict[str, Any]) -> None:
        self.type_name = type_name
        self.fields = fields

    def find(self, key: Any) -> Any:
        return self.fields[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


_TYPES: Final[dict[type, CelType]] = {
    type(None): types.NULL,
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Optional: types.optional_of(types.DYN),
    list: types.list_of(types.DYN),
    dict: types.map_of(types.DYN, types.DYN),
    CelType: types.TYPE,
}


def type_of_literal(value: Any) -> CelType:
    return _TYPES[value.__class__]


def type_of_value(value: Any) -> CelType:
    """The run-time type: lists, maps and optionals without what is in them."""
    found = _TYPES.get(value.__class__)
    if found is not None:
        return CelType(found.kind, found.name) if found.params else found
    if isinstance(value, StructValue):
        return types.object_type(value.type_name)
    if isinstance(value, list):
        return CelType("list", "list")
    if isinstance(value, LazyFields):
        return types.object_type(value.type_name)
    if isinstance(value, ObjectLike):
        return CelType("map", "map")
    if isinstance(value, Special):
        return value.cel_type
    raise no_such_overload()


_GO_TYPES: Final = {
    type(None): "types.Null",
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    Optional: "*types.Optional",
    CelType: "*types.Type",
    dict: "*types.baseMap",
    list: "*types.baseList",
}


def go_type(value: Any) -> str:
    """As upstream's own language calls it, which some of its errors tell; what is no value of CEL is an error there."""
    found = _GO_TYPES.get(value.__class__)
    return found or (f"cel.{value.cel_type.name.rpartition('.')[2]}" if isinstance(value, Special) else "*types.Err")


def size_of(value: Any) -> int:
    """What `size()` gives, and 1 for what has none: the measure of costs."""
    kind = value.__class__
    if kind is str or kind is list or kind is dict or kind is bytes:
        return len(value)
    if isinstance(value, Optional):
        return size_of(value.value) if value is not NONE else 1
    if isinstance(value, (list, ObjectLike)):
        return len(value)
    return value.cel_size() if isinstance(value, Special) else 1


_PLAIN: Final = frozenset({str, int, bool, bytes, float, type(None), Uint})
_NUMBERS: Final = frozenset({int, float, Uint})


def equal(a: Any, b: Any) -> bool:
    """`==`: numbers across their types, lists and maps by what is in them; values of different types are not equal.

    Values of Kubernetes' own types (quantities, what a schema describes) equal nothing else by an error; null is compared before them.
    """
    ka, kb = a.__class__, b.__class__
    if ka in _PLAIN:
        return bool(a == b) if ka is kb or (ka in _NUMBERS and kb in _NUMBERS) else False
    if isinstance(a, list):
        if not isinstance(a, CorrelatedList):
            return isinstance(b, list) and equal_lists(a, b)
        return _comparable(b, isinstance(b, list)) and a.equals(b)
    if ka is dict or isinstance(a, StructValue):
        return (kb is dict or isinstance(b, ObjectLike)) and _equal_maps(a, b)
    if isinstance(a, ObjectLike):
        return _comparable(b, kb is dict or isinstance(b, ObjectLike)) and _equal_maps(a, b)
    if isinstance(a, Optional):
        if not isinstance(b, Optional) or (a is NONE) != (b is NONE):
            return False
        return a is NONE or equal(a.value, b.value)
    if isinstance(a, Special):
        return _comparable(b, ka is kb) and a.equals(b)
    return ka is kb and bool(a == b)


def _comparable(other: Any, alike: bool) -> bool:
    if not alike and other is not None:
        raise no_such_overload()
    return alike


def equal_lists(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))


def _equal_maps(a: Any, b: Any) -> bool:
    if len(a) != len(b) or (isinstance(a, StructValue) and (not isinstance(b, StructValue) or a.type_name != b.type_name)):
        return False
    for key in a:
        try:
            other = find(b, key)
        except KeyError:
            return False
        if not equal(find(a, key), other):
            return False
    return True


def find(mapping: Any, key: Any) -> Any:
    """An entry of a map. Raises KeyError. `1` finds `1u` and `1.0`, but not `true`."""
    if mapping.__class__ is not dict:
        return mapping.find(key)
    value = mapping[key]  # Python takes True for 1
    if key.__class__ is bool or (key.__class__ in _NUMBERS and key in (0, 1)):
        wants = key.__class__ is bool
        if not any(k == key and (k.__class__ is bool) == wants for k in mapping):
            raise KeyError(key)
    return value


def shown(value: Any) -> str:
    """A value as Go prints it in messages about keys and indexes."""
    if value.__class__ is bool:
        return "true" if value else "false"
    if isinstance(value, float):
        return go_float(value)
    return str(value)
