"""The run-time values of CEL, and values that are computed at first use.

Decoded JSON is used unchanged: None, bool, int (int64), float, str, list and dict. Bytes are `bytes`, types are
`CelType`.

Upstream: cel-go common/types; k8s.io/apiserver/pkg/cel/lazy and pkg/cel/mutation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.types import CelType
from tetrapod.machinery.golang.floats import go_float

NO_OVERLOAD: Final = "no such overload"


def no_such_overload() -> EvaluationError:
    """Return a new error with the text `no such overload`."""
    return EvaluationError(NO_OVERLOAD)


class Uint(int):
    """An unsigned 64-bit integer. It equals the int of the same value, but is of another CEL type."""

    __slots__ = ()


class Duration:
    """A duration: a number of nanoseconds (`ns`), which may be negative."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and other.ns == self.ns

    def __hash__(self) -> int:
        return hash(("duration", self.ns))


class Timestamp:
    """A point in time: the nanoseconds since 1970-01-01 UTC (`ns`), which may be negative."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and other.ns == self.ns

    def __hash__(self) -> int:
        return hash(("timestamp", self.ns))


class Optional:
    """An optional value. The empty optional is always the object `NONE`.

    Args:
        value: the value, which may be `Lazy`.
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def value(self) -> Any:
        """The value.

        Raises:
            EvaluationError: the value is lazy and cannot be computed.
        """
        return _made(self._value)


NONE: Final = Optional(None)


class Special:
    """The base class of the values of library types: addresses, quantities, authorizers and others."""

    __slots__ = ()
    cel_type: ClassVar[CelType]

    def equals(self, other: Any) -> bool:
        """Return whether this value equals another one of the same class. Subclasses implement it."""
        raise NotImplementedError

    def cel_size(self) -> int:
        """Return the size from which the costs of calls with this value are computed."""
        return 1


class CorrelatedList(list[Any]):
    """The base class of lists that `==` compares without order: sets, and lists whose elements have keys."""

    __slots__ = ()

    def equals(self, other: list[Any]) -> bool:
        """Return whether both lists have equal elements, in any order; for lists with keys, by their keys."""
        raise NotImplementedError

    def merged(self, other: list[Any]) -> list[Any]:
        """Return the result of `+`: a new list with the elements of this one and those of `other` that it lacks.

        In a list with keys, elements of `other` replace those with the same keys.
        """
        raise NotImplementedError


class ObjectLike:
    """The base class of maps and objects whose entries are computed on demand. Iteration yields the keys."""

    __slots__ = ()

    def find(self, key: Any) -> Any:
        """Return the value of a key.

        Raises:
            KeyError: the key does not exist.
        """
        raise KeyError(key)

    def equals(self, other: Any) -> bool:
        """Return whether this value and another map or object have the same keys with equal values."""
        return _equal_maps(self, other)

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class Lazy:
    """The value of a variable that the function `make` computes at its first use in an evaluation."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class CheckedList(list[Any]):
    """A list that may have elements of other types than its schema declares, as `Lazy` values.

    Reading such an element raises its error, but other uses of the list, such as its size, do not.
    """

    __slots__ = ()

    def elements(self) -> Iterator[Any]:
        """Yield the elements. Those that cannot be read are `Lazy`."""
        return super().__iter__()

    def __iter__(self) -> Iterator[Any]:
        return map(_made, super().__iter__())

    def __getitem__(self, place: Any) -> Any:
        return _made(super().__getitem__(place))


def _made(value: Any) -> Any:
    return value.make() if value.__class__ is Lazy else value


class LazyFields(ObjectLike):
    """An object whose fields are computed at first use and then cached, such as `variables` of a policy.

    If a function raises EvaluationError, nothing is cached: the next use of the field calls the function again.

    Args:
        type_name: the name of its object type.
        functions: compute the fields, by name.
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


class WrappedMap(ObjectLike):
    """The base class of maps that another value wraps, such as those within the claims of a token.

    Other than objects with a schema, they are unequal to values of other types. They never count as zero values.

    Upstream: plugin/pkg/authenticator/token/oidc/oidc.go, unescapeMapper.
    """

    __slots__ = ()


class Fields(ObjectLike):
    """The base class of objects with fields that can be selected, but without a size and membership (`in`).

    In an expression, iteration yields the values of the fields (`elements`). An object is only equal to itself.

    Attributes:
        type_name: the name of its object type.

    Upstream: k8s.io/apiserver/pkg/cel/lazy/lazy.go, MapValue.
    """

    __slots__ = ()
    type_name: str

    def elements(self) -> Iterator[Any]:
        """Yield the values of the fields.

        Raises:
            EvaluationError: the name of a field cannot be selected.
        """
        raise NotImplementedError


class StructValue(ObjectLike):
    """The value of `Object.spec{…}` or `JSONPatch{…}`: the name of its type, and the CEL values of its fields.

    Only fields that the expression sets are included. `json_values.json_value` converts the value to JSON.

    Args:
        type_name: the name of the type.
        fields: the values by field name.
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
    """Return the static type of a constant in an expression."""
    return _TYPES[value.__class__]


def type_of_value(value: Any) -> CelType:
    """Return the run-time type of a value, which `type()` returns. Lists, maps and optionals have no type parameters.

    Raises:
        EvaluationError: the value is not a CEL value.
    """
    known = _TYPES.get(value.__class__)
    if known is not None:
        return CelType(known.kind, known.name) if known.params else known
    if isinstance(value, StructValue):
        return types.object_type(value.type_name)
    if isinstance(value, list):
        return CelType("list", "list")
    if isinstance(value, (LazyFields, Fields)):
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
    """Return the name of a value's Go type in upstream's implementation, which some error texts contain.

    For objects that are not CEL values it is `*types.Err`.
    """
    known = _GO_TYPES.get(value.__class__)
    return known or (f"cel.{value.cel_type.name.rpartition('.')[2]}" if isinstance(value, Special) else "*types.Err")


def size_of(value: Any) -> int:
    """Return the result of `size()`, or 1 for a value without a size. The rules of costs use it."""
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
    """Return whether `a == b` in CEL.

    Numbers are compared across their types, and lists and maps by their contents. Values of different types are not
    equal.

    Raises:
        EvaluationError: `a` is of a Kubernetes type (such as a quantity, or an object with a schema), and `b` is
            neither null nor of the same type.
    """
    ka, kb = a.__class__, b.__class__
    if ka in _PLAIN:
        return bool(a == b) if ka is kb or (ka in _NUMBERS and kb in _NUMBERS) else False
    if isinstance(a, list):
        if not isinstance(a, CorrelatedList):
            return isinstance(b, list) and equal_lists(a, b)
        return _comparable(b, isinstance(b, list)) and a.equals(b)
    if ka is dict or isinstance(a, (StructValue, WrappedMap)):
        return (kb is dict or isinstance(b, ObjectLike)) and _equal_maps(a, b)
    if isinstance(a, Fields):
        return _comparable(b, isinstance(b, Fields)) and a is b
    if isinstance(a, ObjectLike):
        return _comparable(b, kb is dict or isinstance(b, ObjectLike)) and a.equals(b)
    if isinstance(a, Optional):
        if not isinstance(b, Optional) or (a is NONE) != (b is NONE):
            return False
        return a is NONE or equal(a.value, b.value)
    if isinstance(a, Special):
        return _comparable(b, ka is kb) and a.equals(b)
    return ka is kb and bool(a == b)


def _comparable(other: Any, alike: bool) -> bool:
    """Return `alike`: whether `==` can compare two values. False is returned only if the other value is null.

    Args:
        other: the value with which a value of a Kubernetes type is compared.
        alike: whether both are of the same type.

    Raises:
        EvaluationError: `alike` is False, and `other` is not null.
    """
    if not alike and other is not None:
        raise no_such_overload()
    return alike


def equal_lists(a: list[Any], b: list[Any]) -> bool:
    """Return whether two lists have equal elements (`equal`) in the same order.

    Raises:
        EvaluationError: two elements cannot be compared.
    """
    return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))


def _equal_maps(a: Any, b: Any) -> bool:
    if len(a) != len(b) or (
        isinstance(a, StructValue) and (not isinstance(b, StructValue) or a.type_name != b.type_name)
    ):
        return False
    for key in a:
        try:
            own, other = find(a, key), find(b, key)
        except KeyError:
            return False
        if not equal(own, other):
            return False
    return True


def find(mapping: Any, key: Any) -> Any:
    """Return the value of a key in a map or object. `1` finds `1u` and `1.0`, but not `true`.

    Raises:
        KeyError: the key does not exist.
    """
    if mapping.__class__ is not dict:
        return mapping.find(key)
    value = mapping[key]  # True equals 1 in Python
    if key.__class__ is bool or (key.__class__ in _NUMBERS and key in (0, 1)):
        is_bool = key.__class__ is bool
        if not any(k == key and (k.__class__ is bool) == is_bool for k in mapping):
            raise KeyError(key)
    return value


def shown(value: Any) -> str:
    """Return a value as Go prints it with %v, for messages about keys and indexes."""
    if value.__class__ is bool:
        return "true" if value else "false"
    if isinstance(value, float):
        return go_float(value)
    return str(value)
