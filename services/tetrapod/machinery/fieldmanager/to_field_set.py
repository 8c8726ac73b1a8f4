"""The field set of an applied configuration: every field that it contains.

Upstream: sigs.k8s.io/structured-merge-diff/typed/tofieldset.go.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.fieldmanager.fieldset import Branch, FieldSet, branch_of, is_member, ordered
from tetrapod.machinery.fieldmanager.pathelement import SELF
from tetrapod.machinery.fieldmanager.typed import LIST, MAP, SCALAR, Type
from tetrapod.machinery.sorting import sort_large


def field_set(value: Any, value_type: Type) -> FieldSet:
    """Return the set of all fields of a whole object, such as an applied configuration.

    Raises:
        SchemaError: the object has an undeclared field, or a list element without a key.
    """
    branch = _branch(value, value_type)
    return branch or {}


def _branch(value: Any, value_type: Type) -> Branch | None:
    """Return the field set of a value and everything in it; its paths begin at the value.

    The result is {} if only the value itself is a member (a scalar, or owned as a whole). It is None if the value adds
    nothing to the set of its object, such as null where the type has a map or list.
    """
    kind = value_type.kind_of(value)
    if kind == SCALAR or (kind == MAP and value_type.map_atomic) or (kind == LIST and value_type.list_atomic):
        return {}
    if kind == MAP:
        return _members(value, value_type) if isinstance(value, dict) else None
    return _items(value, value_type) if isinstance(value, list) else None


def _members(value: dict[str, Any], value_type: Type) -> Branch | None:
    out: Branch = {}
    for name in sort_large(value):
        member = value[name]
        branch = _branch(member, value_type.member(name))
        if member is None or member == {} or value_type.field(name) is None:
            branch = _as_member(branch)
        if branch is not None:
            out["f:" + name] = branch
    return out or None


def _items(value: list[Any], value_type: Type) -> Branch | None:
    assert value_type.items is not None
    elements = [value_type.element_of(item) for item in value]
    out: Branch = {}
    for element, item in zip(elements, value, strict=True):
        # An element that occurs twice is owned as a whole.
        out[element] = {} if element in out else _as_member(_branch(item, value_type.items))
    return ordered(out) or None


def _as_member(branch: Branch | None) -> Branch | None:
    if branch is None or is_member(branch):
        return branch or {}
    return branch_of(True, {k: v for k, v in branch.items() if k != SELF})
