"""Go structs without JSON tags as error messages print them: every field by its Go name, in the order of the struct.

Upstream quotes values of its internal types in errors, and shows differences of immutable parts as JSON of these types.
A `StructTypes` converts objects of the wire to that form, from a table that lists the fields of each type.
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
    """One field of a Go struct."""

    name: str
    key: str  # its JSON name
    kind: str  # "", "int", "bool", "ptr" …, or one of * = [] + before a type
    type: str = ""

    @property
    def zero(self) -> Any:
        """The zero value of the field; None for pointers, slices, maps and structs."""
        return _ZEROES.get(self.kind)


class StructTypes:
    """A table of Go struct types.

    Args:
        types: the fields of each type, separated by spaces. A field without a suffix is a string. These are the
            suffixes of the others:

            * `:int`, `:bool`, `:quantity`, `:list`, `:map` and `:resources` are what they say.
            * `:port` is an integer or a string.
            * `:ptr` is a pointer to a scalar.
            * `:wire` is a value that is printed as it is on the wire.
            * `:selector` is a LabelSelector.
            * `:meta` is an ObjectMeta, inlined.
            * `*Type` is a pointer to another type, `=Type` its value, `[]Type` a slice of it. `+Type` inlines it.
            * `:NAME` is converted by the function NAME of `kinds`.
        keys: the JSON names of fields that do not follow from their Go names.
        kinds: functions that convert a set value of the wire.
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
        """Return the fields of a type, in the order of the Go struct."""
        fields = self._parsed.get(type_name)
        if fields is None:
            fields = self._parsed[type_name] = tuple(map(self._field, self._types[type_name].split()))
        return fields

    def struct(self, type_name: str, wire: Object) -> Object:
        """Return an object of the wire as its Go struct prints."""
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
        """Return each object of a list as its Go struct prints, or None for an unset list."""
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
        """Return the JSON name of a Go field: a leading acronym is lower-cased up to the start of the next word."""
        if name in self._keys:
            return self._keys[name]
        capitals = 0
        while capitals < len(name) and name[capitals].isupper():
            capitals += 1
        if 1 < capitals < len(name):
            capitals -= 1
        return name[:capitals].lower() + name[capitals:]


def selector(value: Mapping[str, Any] | None) -> Object | None:
    """Return a label selector as upstream prints it, or None if it is unset. It prints with its JSON names."""
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
    """Return labels in sorted order, or None if they are unset."""
    return None if value is None else dict(sorted(value.items()))


def metadata(value: Mapping[str, Any] | None) -> Object:
    """Return the set fields of an embedded ObjectMeta, which prints with its JSON names."""
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
