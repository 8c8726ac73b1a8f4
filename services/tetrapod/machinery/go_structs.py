"""The form in which Go prints structs without JSON tags, for error messages: every field by its Go name, in Go's order.

Upstream quotes values of its internal types in errors, and shows differences of immutable parts as JSON of these types.
A `StructTypes` converts JSON objects to that form, from a table that lists the fields of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import FIELD_ORDER, ordered_owner
from tetrapod.machinery.quantity import Quantity

_ZEROES: Final[dict[str, Any]] = {"": "", "int": 0, "bool": False, "port": 0, "quantity": "0"}
_POINTERS: Final = ("deletionGracePeriodSeconds",)


class GoField(NamedTuple):
    """One field of a Go struct, as the table of a `StructTypes` declares it.

    Attributes:
        name: its Go name.
        key: its JSON name.
        kind: how it is printed: the suffix after the colon ("int", "ptr"), "" for a string, or one of `* = [] +` for
            another type.
        type: the name of that other type; "" without one.
    """

    name: str
    key: str
    kind: str
    type: str = ""

    @property
    def zero(self) -> Any:
        """The zero value of the field: "", 0, False or "0"; None for pointers, slices, maps and structs."""
        return _ZEROES.get(self.kind)


class StructTypes:
    """A table of Go struct types, which converts JSON objects to the form in which Go prints them.

    Args:
        types: the fields of each type, separated by spaces. A field without a suffix is a string. These are the
            suffixes of the others:
            * `:int`, `:bool`, `:quantity`, `:list`, `:map` and `:resources` (a ResourceList) name the type.
            * `:port` is an integer or a string.
            * `:ptr` is a pointer to a scalar.
            * `:wire` is printed as in the JSON object.
            * `:selector` is a LabelSelector.
            * `:meta` is an inlined ObjectMeta.
            * `*Type` is a pointer to another type, `=Type` its value, `[]Type` a slice of it. `+Type` inlines it.
            * `:NAME` is converted by the function NAME of `kinds`.
        keys: the JSON names, by Go name, of fields whose JSON name does not follow from the Go name.
        kinds: functions that convert a JSON value, by the suffix that names them. They are not called for unset values.
    """

    def __init__(
        self, types: Mapping[str, str], keys: Mapping[str, str], kinds: Mapping[str, Callable[[Any], Any]] | None = None
    ) -> None:
        self._types = types
        self._keys = keys
        self._kinds = kinds or {}
        self._parsed: dict[str, tuple[GoField, ...]] = {}
        """The fields of the types that were printed; at most one entry for each type of the table."""

    def fields(self, type_name: str) -> tuple[GoField, ...]:
        """Return the fields of a type, in the order of the Go struct.

        Raises:
            KeyError: the table has no such type.
        """
        fields = self._parsed.get(type_name)
        if fields is None:
            fields = self._parsed[type_name] = tuple(map(self._field, self._types[type_name].split()))
        return fields

    def struct(self, type_name: str, wire: Object) -> Object:
        """Return a JSON object as Go prints its struct: all fields of the type by Go name.

        Unset fields have their zero value.

        Args:
            type_name: the name of the type in the table.
            wire: the JSON object. Parts of it may be shared with the result.

        Raises:
            KeyError: the table lacks the type, or the type of a field.
        """
        struct: Object = {}
        for go in self.fields(type_name):
            if go.kind == "+":
                struct.update(self.struct(go.type, wire))
            elif go.kind == "meta":
                struct.update(metadata(wire.get(go.key)))
            else:
                struct[go.name] = self._value(go, wire.get(go.key))
        return struct

    def structs(self, type_name: str, wires: list[Object] | None) -> list[Object] | None:
        """Return each JSON object of a list in the form of `struct`, or None for an unset list.

        Null in the list counts as an empty object.

        Args:
            type_name: the name of the elements' type in the table.
            wires: the JSON objects.
        """
        return None if wires is None else [self.struct(type_name, wire or {}) for wire in wires]

    def _value(self, field: GoField, value: Any) -> Any:
        match field.kind:
            case "*":
                return None if value is None else self.struct(field.type, value)
            case "=":
                return self.struct(field.type, value or {})
            case "[]":
                return self.structs(field.type, value)
            case "map":
                return dict(sorted(value.items())) if value else None
            case "resources":
                return None if value is None else {name: str(Quantity.of(value[name])) for name in sorted(value)}
            case "selector":
                return selector(value)
            case "list" | "ptr" | "wire":
                return value
            case "quantity":
                return str(Quantity.of(value))
            case kind if kind in self._kinds:
                return None if value is None else self._kinds[kind](value)
            case _:
                return _ZEROES[field.kind] if value is None else value

    def _field(self, text: str) -> GoField:
        for mark in (":", "[]", "*", "=", "+"):
            name, separator, suffix = text.partition(mark)
            if separator:
                return (
                    GoField(name, self._key(name), suffix, "")
                    if mark == ":"
                    else GoField(name, self._key(name), mark, suffix)
                )
        return GoField(text, self._key(text), "")

    def _key(self, name: str) -> str:
        """Return the JSON name of a Go field: that of `keys`, or else derived from the Go name.

        The first letter, or a leading acronym, is in lower case.
        """
        if name in self._keys:
            return self._keys[name]
        capitals = 0
        while capitals < len(name) and name[capitals].isupper():
            capitals += 1
        if 1 < capitals < len(name):
            capitals -= 1
        return name[:capitals].lower() + name[capitals:]


def selector(value: Mapping[str, Any] | None) -> Object | None:
    """Return a LabelSelector as Go prints it, with its JSON names and without empty fields, or None if it is unset."""
    if value is None:
        return None
    printed: Object = {}
    if match_labels := value.get("matchLabels"):
        printed["matchLabels"] = dict(sorted(match_labels.items()))
    if expressions := value.get("matchExpressions"):
        printed["matchExpressions"] = [_requirement(e) for e in expressions]
    return printed


def _requirement(expression: Mapping[str, Any]) -> Object:
    printed: Object = {"key": expression.get("key", ""), "operator": expression.get("operator", "")}
    if values := expression.get("values"):
        printed["values"] = values
    return printed


def labels(value: Mapping[str, str] | None) -> Object | None:
    """Return a sorted copy of labels, or None if they are unset."""
    return None if value is None else dict(sorted(value.items()))


def metadata(value: Mapping[str, Any] | None) -> Object:
    """Return the fields of an ObjectMeta that are not empty, by JSON name and in Go's order; {} if it is unset."""
    printed: Object = {
        key: value[key]
        for key in FIELD_ORDER
        if value and (value.get(key) or (key in _POINTERS and value.get(key) == 0))
    }
    for key in ("labels", "annotations"):
        if key in printed:
            printed[key] = dict(sorted(printed[key].items()))
    if "ownerReferences" in printed:
        printed["ownerReferences"] = [ordered_owner(owner) for owner in printed["ownerReferences"]]
    return printed
