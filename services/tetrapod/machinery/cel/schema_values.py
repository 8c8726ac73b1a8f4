"""Views of JSON values as their schema describes them, for use in expressions.

Strings of some formats become timestamps, durations or bytes. Numbers become doubles. Lists of type set or map compare
without order. Fields have escaped names, and fields that the schema does not declare are missing. Values that need none
of this, which are most parts of most objects, are used unchanged; others are wrapped and converted at first use.
schema_scalars.py converts the scalars.

Upstream: k8s.io/apiserver/pkg/cel/common/valuesunstructured.go, UnstructuredToVal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.escaping import escape, unescape
from tetrapod.machinery.cel.schema_scalars import FORMATS, NULL, boolean, double, int_or_string, integer, string
from tetrapod.machinery.cel.schema_types import is_map, with_meta
from tetrapod.machinery.cel.values import (
    CheckedList,
    CorrelatedList,
    Lazy,
    ObjectLike,
    equal,
    find,
    no_such_overload,
)
from tetrapod.machinery.equality import identical, json_key
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.string_formats import of_type

Convert = Callable[[Any], Any] | None
"""A conversion, or None if values can be used unchanged."""


def bound(node: SchemaNode, value: Any, *, root: bool = False, checked: bool = False) -> Any:
    """Return the JSON value of a variable in the form in which expressions see it, according to its schema.

    It is the value itself if no part of it differs.

    Args:
        node: the schema.
        value: the JSON value, which is not modified.
        root: whether the value is a resource, with apiVersion, kind and metadata.
        checked: whether a part of the value may have another type than the schema declares. An expression that uses
            such a part fails. Validation accepts floats without a fraction, such as 1.0, as integers, and any type that
            an update leaves as it was.
    """
    convert = _converter(with_meta(node) if root else node, checked)
    return value if convert is None else convert(value)


def _converter(node: SchemaNode, checked: bool) -> Convert:
    cache_key = "cel-value-checked" if checked else "cel-value"
    if cache_key not in node.compiled:
        node.compiled[cache_key] = _make(node, checked)
    cached: Convert = node.compiled[cache_key]
    return cached


def _make(node: SchemaNode, checked: bool) -> Convert:
    convert = _not_null(node, checked)
    if convert is None or not node.nullable:
        return convert
    return lambda value: None if value is None else convert(value)


def _not_null(node: SchemaNode, checked: bool) -> Convert:
    if node.int_or_string:
        return int_or_string if checked else None
    match node.type:
        case "object":
            return (
                _map_converter(node, checked)
                if is_map(node) and not node.properties
                else _object_converter(node, checked)
            )
        case "array":
            return _list_converter(node, checked)
        case "string":
            return FORMATS.get(node.format, string if checked or of_type("string", node.format) else None)
        case "number":
            return double
        case "integer" if checked:
            return integer
        case "boolean" if checked:
            return boolean
    return None


def _object_converter(node: SchemaNode, checked: bool) -> Convert:
    if node.embedded_resource:
        node = with_meta(node)
    fields = {name: _converter(child, checked) for name, child in node.properties.items()}
    strict = (
        node.preserve_unknown or node.embedded_resource or any(child.nullable for child in node.properties.values())
    )
    if (
        not strict
        and not checked
        and all(convert is None and escape(name) in (name, None) for name, convert in fields.items())
    ):
        return None
    return lambda value: _Object(value, fields) if value.__class__ is dict else _wrong(value, "a map", "object")


def _map_converter(node: SchemaNode, checked: bool) -> Convert:
    assert node.additional_properties is not None
    convert = _converter(node.additional_properties, checked)
    if convert is None:
        if not checked:
            return None
        convert = _unchanged
    return lambda value: _Map(value, convert) if value.__class__ is dict else _wrong(value, "a map", "object")


def _unchanged(value: Any) -> Any:
    return value


def _list_converter(node: SchemaNode, checked: bool) -> Convert:
    convert = None if node.items is None else _converter(node.items, checked)
    escaped_keys = tuple(escape(key) or key for key in node.list_map_keys)
    scalars = node.items is None or node.items.type not in ("object", "array")

    def items_of(value: Any) -> list[Any]:
        return value if value.__class__ is list else _wrong(value, "an array", "array")

    def items(value: Any) -> list[Any]:
        return items_of(value) if convert is None else [convert(item) for item in items_of(value)]

    if node.list_type == "set":
        return lambda value: SetList(items(value), scalars=scalars)
    if node.list_type == "map":
        return lambda value: MapList(items(value), escaped_keys)
    if checked:
        return lambda value: CheckedList([_element(convert, item) for item in items_of(value)])
    return None if convert is None else items


def _element(convert: Convert, item: Any) -> Any:
    return item if convert is None else attempt(lambda: convert(item))


def attempt(make: Callable[[], Any]) -> Any:
    """Return the CEL value that `make` returns, or a lazy value if `make` raises EvaluationError.

    The lazy value raises the error when an expression uses it.

    Args:
        make: computes the value.
    """
    try:
        return make()
    except EvaluationError:
        return Lazy(make)


def _wrong(value: Any, expected: str, kind: str) -> Any:
    raise EvaluationError(
        NULL if value is None else f"invalid data, expected {expected} for the provided schema with type={kind}"
    )


class _Object(ObjectLike):
    """A JSON object as its schema describes it: fields have escaped names, and undeclared fields are missing.

    Args:
        value: the object as decoded from JSON.
        fields: for each declared field, by its unescaped name, the function that converts its value to CEL when it is
            first
            read; None for values that need no conversion.
    """

    __slots__ = ("_fields", "_found", "_value")

    def __init__(self, value: dict[str, Any], fields: Mapping[str, Convert]) -> None:
        self._value = value
        self._fields = fields
        self._found: dict[str, Any] = {}

    def find(self, key: Any) -> Any:
        if key in self._found:
            return self._found[key]
        if key.__class__ is not str:
            raise no_such_overload()
        name = unescape(key)
        value = self._value.get(name) if name is not None else None
        if name is None or value is None or name not in self._fields:
            raise KeyError(key)
        convert = self._fields[name]
        converted = self._found[key] = value if convert is None else convert(value)
        return converted

    def equals(self, other: Any) -> bool:
        """Return whether another object has as many members, equal fields, and equal undeclared members.

        A field that is null equals a missing one. Upstream: valuesunstructured.go, unstructuredMap.Equal.
        """
        if len(self) != len(other):
            return False
        members = _decoded(other)
        for name, value in self._value.items():
            if name in self._fields:
                own, others = _field(self, name), _field(other, name)
                if (own is None) != (others is None) or (own is not None and not equal(own, others)):
                    return False
            elif members is None:
                raise no_such_overload()
            elif name in members and not identical(value, members[name]):
                return False
        return True

    def decoded(self) -> dict[str, Any]:
        """Return the object as decoded from JSON."""
        return self._value

    def __iter__(self) -> Iterator[Any]:
        return (escape(key) or key for key in self._value if key in self._fields)

    def __len__(self) -> int:
        return len(self._value)


class _Map(ObjectLike):
    """A map whose values are converted when they are first read.

    Args:
        value: the map with its values as decoded from JSON.
        convert: returns the CEL value of a decoded value, as the schema of the values requires.
    """

    __slots__ = ("_convert", "_found", "_value")

    def __init__(self, value: dict[str, Any], convert: Callable[[Any], Any]) -> None:
        self._value = value
        self._convert = convert
        self._found: dict[str, Any] = {}

    def find(self, key: Any) -> Any:
        if key.__class__ is not str:
            raise no_such_overload()
        if key not in self._found:
            self._found[key] = self._convert(self._value[key])
        return self._found[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)


class SetList(CorrelatedList):
    """A list with `x-kubernetes-list-type: set`: `==` ignores the order, and `+` adds only elements that are new.

    Args:
        items: the elements.
        scalars: whether the schema declares the elements as scalars. Others cannot be compared.

    Upstream: valuesunstructured.go, unstructuredSetList; valuesreflect.go, setElementKey.
    """

    __slots__ = ("_scalars",)

    def __init__(self, items: list[Any], *, scalars: bool) -> None:
        super().__init__(items)
        self._scalars = scalars

    def _key_of(self, item: Any) -> Any:
        if not self._scalars:
            raise EvaluationError("listSet operations are only supported on lists of scalar values")
        return _scalar_key(item)

    def equals(self, other: list[Any]) -> bool:
        return len(self) == len(other) and set(map(self._key_of, self)) == set(map(self._key_of, other))

    def merged(self, other: list[Any]) -> list[Any]:
        result, seen = list(self), set(map(self._key_of, self))
        for item in other:
            if (key := self._key_of(item)) not in seen:
                seen.add(key)
                result.append(item)
        return SetList(result, scalars=self._scalars)


class MapList(CorrelatedList):
    """A list with `x-kubernetes-list-type: map`: `==` ignores the order, and `+` merges elements by their keys.

    Upstream: valuesunstructured.go, unstructuredMapList.
    """

    __slots__ = ("_keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        """Create the list.

        Args:
            items: the elements.
            keys: the escaped names of the fields that identify an element.
        """
        super().__init__(items)
        self._keys = keys

    def _key_of(self, item: Any) -> tuple[Any, ...]:
        return tuple(_scalar_key(_field(item, key)) for key in self._keys)

    def _key_in_comparison(self, item: Any) -> tuple[Any, ...]:
        """Return the key by which `==` finds an element.

        Upstream looks up the escaped names in the decoded JSON. A field whose name must be escaped is therefore missing
        in every key.
        """
        members = _decoded(item) or {}
        return tuple(_scalar_key(members.get(key)) for key in self._keys)

    def equals(self, other: list[Any]) -> bool:
        if len(self) != len(other):
            return False
        elements = {self._key_in_comparison(item): item for item in self}
        seen = set()
        for item in other:
            key = self._key_in_comparison(item)
            if key not in elements or not equal(elements[key], item):
                return False
            seen.add(key)
        return len(seen) == len(elements)

    def merged(self, other: list[Any]) -> list[Any]:
        result = list(self)
        indexes = {self._key_of(item): i for i, item in enumerate(self)}
        for item in other:
            index = indexes.get(self._key_of(item))
            if index is None:
                result.append(item)
            else:
                result[index] = item
        return _MergedMapList(result, self._keys)


class _MergedMapList(MapList):
    """The sum of two lists of the type map, whose elements `==` finds by the values of their fields."""

    __slots__ = ()

    _key_in_comparison = MapList._key_of


def _decoded(value: Any) -> dict[str, Any] | None:
    """Return the decoded JSON of an object, or None for other values, such as a map that an expression creates."""
    if isinstance(value, _Object):
        return value.decoded()
    return value if value.__class__ is dict else None


def _scalar_key(value: Any) -> Any:
    """Return a hashable key that is equal for equal values of the same type."""
    return value.__class__, json_key(value)


def _field(item: Any, key: str) -> Any:
    """Return a field of an object, or None if it is missing or null."""
    try:
        return find(item, key)
    except KeyError:
        return None
