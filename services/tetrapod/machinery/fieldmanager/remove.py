"""Removal of a set of fields from an object, and two transformations of field sets that depend on the object's type.

Upstream: sigs.k8s.io/structured-merge-diff/typed (remove.go, reconcile_schema.go) and fieldpath/set.go.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.fieldmanager.fieldset import Branch, FieldSet, branch_of, is_member
from tetrapod.machinery.fieldmanager.pathelement import SELF
from tetrapod.machinery.fieldmanager.typed import LIST, MAP, SCALAR, Type


def remove_items(value: Any, fields: FieldSet, value_type: Type) -> Any:
    """Return a value without the fields and list elements that are members of a set. `value` is not modified.

    As upstream, a map or list that loses all its members, and one that is atomic or empty, becomes None.

    Args:
        value: the object, or a value in it.
        fields: the set of members to remove, as paths that begin at the value.
        value_type: the type of the value.
    """
    kind = value_type.kind_of(value)
    if kind == SCALAR:
        return value
    if kind == MAP:
        if not isinstance(value, dict) or not value or value_type.map_atomic:
            return None
        return _members(value, fields, value_type) or None
    if kind == LIST and (not isinstance(value, list) or not value or value_type.list_atomic):
        return None
    return _items(value, fields, value_type) or None


def _members(value: dict[str, Any], fields: FieldSet, value_type: Type) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, member in value.items():
        branch = fields.get("f:" + name)
        if branch is None:
            out[name] = member
        elif not is_member(branch):
            out[name] = remove_items(member, branch, value_type.member(name))
    return out


def _items(value: list[Any], fields: FieldSet, value_type: Type) -> list[Any]:
    assert value_type.items is not None
    out: list[Any] = []
    for item in value:
        branch = fields.get(value_type.element_of(item))
        if branch is None:
            out.append(item)
        elif not is_member(branch):
            out.append(remove_items(item, branch, value_type.items))
    return out


def with_named_fields(fields: FieldSet, value_type: Type | None) -> FieldSet:
    """Return a set extended by every field on the path to a member, if the type declares the field.

    Args:
        fields: the set, which is not modified.
        value_type: the type of the value that the set belongs to; None, for an unknown type, declares no fields.
    """
    out: FieldSet = {}
    for element, branch in fields.items():
        if not branch:
            out[element] = branch
            continue
        if element == SELF:
            continue
        child = None if value_type is None else value_type.child(element)
        below = with_named_fields(branch, child)
        declared = value_type is not None and element[:2] == "f:" and value_type.field(element[2:]) is not None
        out[element] = {SELF: {}, **_below(below)} if declared or SELF in branch else below
    return out


def _below(branch: Branch) -> Branch:
    return {k: v for k, v in branch.items() if k != SELF} if SELF in branch else branch


def reconcile(fields: FieldSet, value_type: Type | None) -> FieldSet:
    """Return a set adapted to the current schema, or the same object if nothing changes.

    If the schema has made a value atomic (owned as a whole), members below the value are replaced by the value itself.

    Args:
        fields: the set, which is not modified.
        value_type: the type of the value that the set belongs to; None, for an unknown type, changes nothing.
    """
    if (
        value_type is None
        or not (value_type.takes_map or value_type.takes_list)
        or (value_type.takes_map and value_type.deduced)
    ):
        return fields
    changed: dict[str, Branch] = {}
    for element, branch in fields.items():
        if not branch or element == SELF:
            continue
        child = value_type.child(element)
        if child is None:
            continue
        if (child.map_atomic if child.takes_map else child.takes_list and child.list_atomic) and not child.deduced:
            changed[element] = {}
            continue
        below = reconcile(branch, child)
        if below is not branch:
            changed[element] = branch_of(is_member(branch), _below(below)) or {}
    return {**fields, **changed} if changed else fields
