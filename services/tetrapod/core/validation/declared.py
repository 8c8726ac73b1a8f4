"""Rules that upstream declares beside the fields of a type, and the evaluation of these rules.

A `Type` has a `Field` for each field with rules. `validate` compares a new object with these rules, in the order of
upstream's generated code, which decides the order of the errors. It also ratchets: in an update, a field that equals
its stored value is not validated again, so that an object stays valid if its rules become stricter.

Upstream: staging/src/k8s.io/apimachinery/pkg/api/validate, and the files zz_generated.validations.go in pkg/apis.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tetrapod.core.validation.names import IMMUTABLE, errors_from
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field as fields
from tetrapod.machinery import names
from tetrapod.machinery.equality import repeated, same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

Check = Callable[[Any, Any, str], list[FieldError]]
"""Return the errors of a value that is set: (value, stored value or None, field path)."""


@dataclass(frozen=True, slots=True)
class Field:
    """The rules of one field. Without `required` and `embedded`, an unset field has no further errors.

    Attributes:
        checks: rules of the value, in upstream's order. They apply only if no other rule of this class fails.
        type: the rules of the object that the field contains.
        items: the rules of the objects in the list that the field contains.
        key: the field that identifies an item of that list, such as "name"; "" if items have no identity.
        embedded: whether the field is a struct, and not a pointer, in upstream's type, so that it is always set.
        pointer: whether an empty string and 0 count as set.
        required: whether an unset field is an error.
        immutable: whether an update may not change the field.
        gate: the feature gate of the field. While it is disabled, a field that is set is an error; "" for none.
        immutable_without_gate: whether `immutable` applies while the gate is disabled.
        max_items: the most items of a list, or 0.
        no_set: whether an update may not set the field if it is unset.
        no_unset: whether an update may not unset the field.
        no_modify: whether an update may not change a set field to another value.
        fixed_items: whether an update may not add or remove items.
    """

    checks: tuple[Check, ...] = ()
    type: Type | None = None
    items: Type | None = None
    key: str = ""
    embedded: bool = False
    pointer: bool = False
    required: bool = False
    immutable: bool = False
    gate: str = ""
    immutable_without_gate: bool = True
    max_items: int = 0
    no_set: bool = False
    no_unset: bool = False
    no_modify: bool = False
    fixed_items: bool = False

    def is_set(self, value: Any) -> bool:
        """Return whether upstream counts a decoded value as set.

        null and [] are unset, and so are "", 0 and false, unless `pointer` is set; objects are always set.
        """
        if value is None or value == []:
            return False
        return self.pointer or isinstance(value, dict) or bool(value)


@dataclass(slots=True)
class Type:
    """The rules of an object.

    Attributes:
        fields: the rules of its fields by name, in upstream's order. A recursive type is added to its own fields after
            it was created.
        union: the fields of which exactly one must be set; () for none.
    """

    fields: dict[str, Field] = field(default_factory=dict)
    union: tuple[str, ...] = ()


def validate(kind: Type, new: Object, old: Object | None, path: str, *, update: bool) -> list[FieldError]:
    """Return the errors of an object by the rules of its type.

    Args:
        kind: the rules.
        new: the new object.
        old: the stored object; None without one, as for a new item of a list.
        path: the field path of the object, "" for the whole object.
        update: whether the request updates a stored object.
    """
    errors = _union(kind, new, old if update else None, path)
    for name, rules in kind.fields.items():
        value, stored = new.get(name), None if old is None else old.get(name)
        if rules.embedded:
            value, stored = value or {}, None if old is None else stored or {}
        if update and old is not None and _equal(rules, value, stored):
            continue
        errors += _field(rules, value, stored, fields.child(path, name), update=update)
    return errors


def _equal(rules: Field, value: Any, stored: Any) -> bool:
    return same(value, stored) or not (rules.is_set(value) or rules.is_set(stored))


def _union(kind: Type, new: Object, old: Object | None, path: str) -> list[FieldError]:
    """Return an error unless exactly one field of the union is set.

    In an update that changes no member's state, other numbers are accepted too.

    Upstream: union.go, Union.
    """
    if not kind.union:
        return []
    members = [name for name in kind.union if kind.fields[name].is_set(new.get(name))]
    if len(members) == 1:
        return []
    if old is not None and members == [name for name in kind.union if kind.fields[name].is_set(old.get(name))]:
        return []
    listed = ", ".join(f"`{name}`" for name in kind.union)
    if members:
        return [fields.invalid(path, f"{{{', '.join(members)}}}", f"must specify exactly one of: {listed}")]
    return [fields.invalid(path, "", f"must specify one of: {listed}")]


def _field(rules: Field, value: Any, stored: Any, path: str, *, update: bool) -> list[FieldError]:
    is_set = rules.is_set(value)
    enabled = not rules.gate or feature_gates.enabled(rules.gate)
    errors = [] if enabled or not is_set else [fields.forbidden(path)]
    if update and rules.immutable and (enabled or rules.immutable_without_gate):
        errors.append(fields.invalid(path, None, IMMUTABLE))
    if rules.max_items and len(value or ()) > rules.max_items:
        errors.append(fields.too_many(path, len(value), rules.max_items))
    if rules.required and not is_set:
        errors.append(fields.required(path))
    if update:
        errors += _transitions(rules, value, stored, path)
    if errors or not (enabled and (is_set or rules.embedded)):
        return errors
    for check in rules.checks:
        errors += check(value, stored, path)
    if rules.type is not None:
        errors += validate(rules.type, value, stored, path, update=update)
    if rules.items is not None:
        errors += _items(rules, rules.items, value, stored or (), path, update=update)
    return errors


def _transitions(rules: Field, value: Any, stored: Any, path: str) -> list[FieldError]:
    """Return the errors of an update that changes a field in a way that its rules do not allow.

    Upstream: update.go.
    """
    is_set, was_set = rules.is_set(value), rules.is_set(stored)
    errors = []
    if rules.no_set and is_set and not was_set:
        errors.append(fields.invalid(path, None, "field cannot be set once created"))
    if rules.no_unset and was_set and not is_set:
        errors.append(fields.invalid(path, None, "field cannot be cleared once set"))
    if rules.no_modify and is_set and was_set:
        errors.append(fields.invalid(path, None, "field cannot be modified once set"))
    if rules.fixed_items:
        new_keys, old_keys = ([item.get(rules.key) for item in listed or ()] for listed in (value, stored))
        added, removed = set(new_keys) - set(old_keys), set(old_keys) - set(new_keys)
        errors += [fields.forbidden(fields.index(path, i), _ADDED) for i, key in enumerate(new_keys) if key in added]
        errors += [fields.forbidden(path, _REMOVED) for key in old_keys if key in removed]
    return errors


_ADDED: Final = "item may not be added"
_REMOVED: Final = "item may not be removed"


def _items(
    rules: Field, kind: Type, new: Sequence[Object], old: Sequence[Object], path: str, *, update: bool
) -> list[FieldError]:
    """Return the errors of the items of a list, and an error for each item whose key repeats an earlier one.

    Each item is compared with the stored item that has the same key; an equal one is not validated again.
    """
    errors, stored = [], {}
    if rules.key:
        errors = [
            fields.duplicate(fields.index(path, i), new[i]) for i in sorted(repeated(i.get(rules.key) for i in new))
        ]
        for item in reversed(old):
            stored[item.get(rules.key)] = item  # the first one with a key counts, as upstream
    for i, item in enumerate(new):
        stored_item = stored.get(item.get(rules.key))
        if not (update and stored_item is not None and same(item, stored_item)):
            errors += validate(kind, item, stored_item, fields.index(path, i), update=update)
    return errors


def short_name(value: str, stored: Any, path: str) -> list[FieldError]:
    """Validate a name of at most 63 characters (a DNS label). It is a `Check`; `stored` is not used."""
    return errors_from(names.is_short_name, value, path)


def long_name(value: str, stored: Any, path: str) -> list[FieldError]:
    """Validate a name of at most 253 characters (a DNS subdomain). It is a `Check`; `stored` is not used."""
    return errors_from(names.is_long_name, value, path)


def path_segment_name(value: str, stored: Any, path: str) -> list[FieldError]:
    """Validate a name that can be a segment of a URL's path. It is a `Check`; `stored` is not used."""
    return errors_from(names.is_path_segment_name, value, path)


def label_key(value: str, stored: Any, path: str) -> list[FieldError]:
    """Validate the key of a label. It is a `Check`; `stored` is not used."""
    return errors_from(names.is_qualified_name, value, path)


def prefixed_label_key(value: str, stored: Any, path: str) -> list[FieldError]:
    """Validate the key of a label with a prefix (`example.com/key`). It is a `Check`; `stored` is not used."""
    errors = errors_from(names.is_qualified_name, value, path)
    return errors if errors or "/" in value else [fields.invalid(path, value, _NO_PREFIX)]


_NO_PREFIX: Final = "must include a prefix (e.g. 'example.com/key')"


def uuid(value: str, stored: Any, path: str) -> list[FieldError]:
    """Validate a UUID in lower case, with dashes. It is a `Check`; `stored` is not used."""
    return [] if _uuid_re(value) else [fields.invalid(path, value, _NO_UUID)]


_uuid_re: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII).fullmatch
_NO_UUID: Final = "must be a lowercase UUID in 8-4-4-4-12 format"


def not_decreased(value: int, stored: int | None, path: str) -> list[FieldError]:
    """Reject an integer that is less than the stored one. It is a `Check`."""
    if stored is None or value >= stored:
        return []
    return [fields.invalid(path, value, f"may not be decreased from {stored}")]


def max_length(limit: int) -> Check:
    """Return a check that rejects strings of more than `limit` characters."""

    def check(value: str, stored: Any, path: str) -> list[FieldError]:
        return [] if len(value) <= limit else [fields.too_many_characters(path, limit)]

    return check


def at_least(limit: int) -> Check:
    """Return a check that rejects integers below `limit`."""

    def check(value: int, stored: Any, path: str) -> list[FieldError]:
        text = f"must be greater than or equal to {limit}"
        return [] if value >= limit else [fields.invalid(path, value, text)]

    return check


def at_most(limit: int) -> Check:
    """Return a check that rejects integers above `limit`."""

    def check(value: int, stored: Any, path: str) -> list[FieldError]:
        text = f"must be less than or equal to {limit}"
        return [] if value <= limit else [fields.invalid(path, value, text)]

    return check


def one_of(*values: str) -> Check:
    """Return a check that rejects strings other than `values`; the error lists them sorted, as upstream."""
    supported = frozenset(values)

    def check(value: str, stored: Any, path: str) -> list[FieldError]:
        return [] if value in supported else [fields.not_supported(path, value, supported)]

    return check
