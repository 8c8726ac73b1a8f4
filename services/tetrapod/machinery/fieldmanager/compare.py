"""Comparison of two versions of an object: the fields that were added or modified, and those that were removed.

Fields that were added or modified are called touched. The comparison runs on every write and is optimized: a new value
is converted to its field set in one pass, and equal parts are not traversed.

Upstream: sigs.k8s.io/structured-merge-diff/typed/compare.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from tetrapod.machinery.fieldmanager.fieldset import Branch, FieldSet, ordered, union
from tetrapod.machinery.fieldmanager.pathelement import SELF
from tetrapod.machinery.fieldmanager.typed import LIST, MAP, SCALAR, Type
from tetrapod.machinery.freeing import free_members
from tetrapod.machinery.sorting import sort_large


class Changes(NamedTuple):
    """The fields that differ between two objects.

    The fields `touched` were added or modified; the fields `removed` are only in the old object.
    """

    touched: FieldSet
    removed: FieldSet


class _Differences(NamedTuple):
    """The changes at and below one path, as field sets whose paths begin there.

    Attributes:
        touched: the added and modified fields; None if no field was added or modified.
        removed: the removed fields; None if no field was removed.
    """

    touched: Branch | None
    removed: Branch | None


_SAME = _Differences(None, None)
_MODIFIED = _Differences({}, None)


def compare(old: Any, new: Any, value_type: Type) -> Changes:
    """Return the fields that differ between two whole objects of type `value_type`.

    Raises:
        SchemaError: a changed part has an undeclared field, or a list element without a key.
    """
    changes = _compare(old, new, value_type)
    return Changes(changes.touched or {}, changes.removed or {})


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal. 1 equals 1.0, but true does not equal 1."""
    if left != right:
        return False
    if isinstance(left, dict):
        return all(same(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return all(map(same, left, right))
    return isinstance(left, bool) is isinstance(right, bool)


def whole(value: Any, value_type: Type) -> Branch:
    """Return a field set with a value itself and everything in it; its paths begin at the value.

    It is for a value that only one of the two compared objects has. If the value is empty or owned as a whole (atomic),
    the result is {}: the set has no member but the value itself.

    Raises:
        SchemaError: the value has an undeclared field, or a list element without a key.
    """
    if isinstance(value, dict):
        if not value or not value_type.takes_map or value_type.map_atomic:
            return {}
        out: Branch = {SELF: {}}
        for name in sort_large(value):
            member, member_type = value[name], value_type.member(name)
            out["f:" + name] = whole(member, member_type) if isinstance(member, (dict, list)) else {}
        return out
    if isinstance(value, list):
        if not value or not value_type.takes_list or value_type.list_atomic or value_type.kind_of(value) != LIST:
            return {}
        assert value_type.items is not None
        out = {SELF: {}}
        for item in value:
            element = value_type.element_of(item)
            is_leaf = element in out or not isinstance(item, (dict, list))
            out[element] = {} if is_leaf else whole(item, value_type.items)
        return ordered(out)
    return {}


def _compare(old: Any, new: Any, value_type: Type) -> _Differences:
    if old is new:
        return _SAME
    old_kind, new_kind = value_type.kind_of(old), value_type.kind_of(new)
    as_new = _compare_as(new_kind, old, new, value_type)
    if old_kind == new_kind:
        return as_new
    as_old = _compare_as(old_kind, old, new, value_type)
    return _Differences(_both(as_old.touched, as_new.touched), _both(as_old.removed, as_new.removed))


def _both(left: Branch | None, right: Branch | None) -> Branch | None:
    if left is None or right is None:
        return right if left is None else left
    return union({"f:": left}, {"f:": right})["f:"]  # type: ignore[no-any-return]


def _compare_as(kind: int, old: Any, new: Any, value_type: Type) -> _Differences:
    if kind == SCALAR:
        return _SAME if same(old, new) else _MODIFIED
    if kind == MAP:
        old_map, new_map = old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {}
        if value_type.map_atomic or not (old_map or new_map):
            return _SAME if same(old, new) else _MODIFIED
        return _compare_maps(old_map, new_map, value_type)
    old_list, new_list = old if isinstance(old, list) else [], new if isinstance(new, list) else []
    if value_type.list_atomic or not (old_list or new_list):
        return _SAME if same(old, new) else _MODIFIED
    return _compare_lists(old_list, new_list, value_type)


def _compare_maps(old: dict[str, Any], new: dict[str, Any], value_type: Type) -> _Differences:
    touched: Branch = {}
    removed: Branch = {}
    for name in sort_large(new):
        value = new[name]
        if name not in old:
            touched["f:" + name] = whole(value, value_type.member(name))
            continue
        old_value = old[name]
        if old_value is value or ((value_type.built_in or type(value) is str) and old_value == value):
            continue
        member_touched, member_removed = _compare(old_value, value, value_type.member(name))
        if member_touched is not None:
            touched["f:" + name] = member_touched
        if member_removed is not None:
            removed["f:" + name] = member_removed
    if any(name not in new for name in old):
        for name, value in old.items():
            if name not in new:
                removed["f:" + name] = whole(value, value_type.member(name))
        removed = ordered(removed)
    return _Differences(touched or None, removed or None)


def _compare_lists(old: list[Any], new: list[Any], value_type: Type) -> _Differences:
    items = value_type.items
    assert items is not None
    old_by_element, new_by_element = _by_element(old, value_type), _by_element(new, value_type)
    touched: Branch = {}
    removed: Branch = {}
    for element in _either(old_by_element, new_by_element):
        olds, news = old_by_element.get(element, []), new_by_element.get(element, [])
        if len(olds) == len(news) == 1:
            if items.built_in and olds[0] == news[0]:
                continue
            item_touched, item_removed = _compare(olds[0], news[0], items)
            if item_touched is not None:
                touched[element] = item_touched
            if item_removed is not None:
                removed[element] = item_removed
        elif len(olds) > 1 and len(news) > 1:
            if not same(olds, news):
                touched[element] = {}
        else:
            # Repeated elements are owned as a whole; a single element is owned by its fields.
            if olds:
                removed[element] = {} if len(olds) > 1 else whole(olds[0], items)
            if news:
                touched[element] = {} if len(news) > 1 else whole(news[0], items)
    free_members(old_by_element)
    free_members(new_by_element)
    return _Differences(ordered(touched) or None, ordered(removed) or None)


def _either(old: Collection[str], new: Collection[str]) -> Iterator[str]:
    """Yield the elements of `old`, then those of `new` that are not in `old`.

    This is not a set union, because that would keep other threads from running while it joins large dictionaries.
    """
    yield from old
    for element in new:
        if element not in old:
            yield element


def _by_element(values: list[Any], value_type: Type) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for item in values:
        out.setdefault(value_type.element_of(item), []).append(item)
    return out
