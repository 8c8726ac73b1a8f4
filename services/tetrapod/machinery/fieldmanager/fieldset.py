"""Sets of fields of an object, in the wire form of `fieldsV1`.

A set maps path elements (`pathelement.py`) to the branch below each. An element with the empty branch `{}` is a member
of the set, without members below it. Otherwise the element is a member only if its branch has the key `.`. Decoding is
therefore plain JSON decoding, and most sets of two versions of an object share their parts. Sets are immutable, and the
keys of each dictionary have upstream's order.

Upstream: sigs.k8s.io/structured-merge-diff/fieldpath (set.go, serialize.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from tetrapod.machinery.fieldmanager.pathelement import SELF, canonical, order
from tetrapod.machinery.sorting import sort_large

FieldSet: TypeAlias = dict[str, Any]
Branch: TypeAlias = dict[str, Any]
FieldFilter: TypeAlias = Callable[[FieldSet], FieldSet]


def of_paths(paths: Iterable[Iterable[str]]) -> FieldSet:
    """Return the set whose members are the given paths, each a sequence of path elements (`f:spec`).

    An empty path is ignored.
    """
    out: FieldSet = {}
    for path in paths:
        elements = list(path)
        branch: Branch = {}
        for element in reversed(elements[1:]):
            branch = {element: branch}
        if elements:
            out = union(out, {elements[0]: branch})
    return out


def of_fields(paths: Iterable[Iterable[str]]) -> FieldSet:
    """Return the set whose members are the given paths, each a sequence of field names (`spec`)."""
    return of_paths([f"f:{name}" for name in path] for path in paths)


def decode(fields: Any) -> FieldSet:
    """Return the canonical form of a field set from an object: sorted, and without elements of unknown kinds.

    Args:
        fields: the decoded `fieldsV1`; None for the empty set.

    Raises:
        ValueError: the value is not a field set.
    """
    if fields is None:
        return {}
    branch = _decode(fields)
    branch.pop(SELF, None)
    return branch


def _decode(fields: Any) -> Branch:
    if not isinstance(fields, dict):
        raise ValueError("a field set must be an object")
    out: Branch = {}
    for element, below in fields.items():
        if element == SELF:
            out[SELF] = {}
        elif (known := canonical(element)) is not None:
            branch = {} if below is None else _decode(below)
            out[known] = _union(out[known], branch) if known in out else branch
    if SELF in out and len(out) == 1:
        return {}
    return ordered(out)


def ordered(branch: Branch) -> Branch:
    """Return a field set, or a branch of one, with its outermost path elements in upstream's order.

    The branches below these elements are returned as they are.
    """
    if len(branch) < 2:
        return branch
    return {element: branch[element] for element in sort_large(branch, order)}


def is_member(branch: Branch | None) -> bool:
    """Return whether a path element is itself a member of a field set, not only elements below it.

    `branch` is the value of the element in the set; None, for an element that is not in the set, gives False.
    """
    return branch is not None and (not branch or SELF in branch)


def has(fields: FieldSet, path: Iterable[str]) -> bool:
    """Return whether a path, a sequence of path elements (`f:spec`), is a member of the set."""
    branch: Branch | None = None
    below: Branch | None = fields
    for element in path:
        branch = below = below.get(element) if below else None
    return is_member(branch)


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all members in upstream's order: at each level first all members, then those below them.

    Args:
        fields: the set.
        prefix: the path elements with which each result begins.
    """
    for element, branch in fields.items():
        if element != SELF and is_member(branch):
            yield (*prefix, element)
    for element, branch in fields.items():
        if element != SELF and branch:
            yield from paths(branch, (*prefix, element))


def branch_of(member: bool, below: Branch) -> Branch | None:
    """Return the value that a path element has in a field set: a dictionary of the members below it.

    Args:
        member: whether the element is itself a member, which the key `.` or an empty dictionary says.
        below: the members below it by path element, without the key `.`.

    Returns:
        The value, or None if neither the element nor anything below it is a member, so that it is not in the set.
    """
    if not below:
        return {} if member else None
    return {SELF: {}, **below} if member else below


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the set of the members of either set. It may be one of the two objects."""
    if not left or left is right:
        return right
    return _merge(left, right) if right else left


def _union(left: Branch, right: Branch) -> Branch:
    if left is right:
        return left
    if not left:
        return right if not right or SELF in right else {SELF: {}, **right}
    if not right:
        return left if SELF in left else {SELF: {}, **left}
    return _merge(left, right)


def _merge(left: Branch, right: Branch) -> Branch:
    out = dict(left)
    has_new = False
    for element, branch in right.items():
        if element in out:
            out[element] = _union(out[element], branch) if element != SELF else {}
        else:
            out[element] = branch
            has_new = True
    return ordered(out) if has_new else out


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the set of the members of both sets."""
    out: FieldSet = {}
    for element, branch in left.items():
        other = right.get(element)
        if other is not None and element != SELF:
            member = is_member(branch) and is_member(other)
            both = branch_of(member, intersection(branch, other) if branch and other else {})
            if both is not None:
                out[element] = both
    return out


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of `left` that are not members of `right`. Members below a removed member are kept."""
    if not right:
        return left
    out: FieldSet = {}
    for element, branch in left.items():
        other = right.get(element)
        if element == SELF:
            continue
        if other is None:
            out[element] = branch
            continue
        remaining = branch_of(is_member(branch) and not is_member(other), _below(difference(branch, other)))
        if remaining is not None:
            out[element] = remaining
    return out


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of `left` that are neither members of `right` nor below one."""
    if not right:
        return left
    out: FieldSet = {}
    for element, branch in left.items():
        other = right.get(element)
        if element == SELF:
            continue
        if other is None:
            out[element] = branch
        elif not is_member(other):
            below = _below(recursive_difference(branch, other))
            remaining = branch_of(is_member(branch), below)
            if remaining is not None:
                out[element] = remaining
    return out


def _below(branch: Branch) -> Branch:
    return {k: v for k, v in branch.items() if k != SELF} if SELF in branch else branch


def exclude(fields: FieldSet) -> FieldFilter:
    """Return a filter of field sets that removes the members of `fields` and everything below them.

    Strategies declare with it the fields that they reset, and that users therefore cannot own.
    """
    return lambda field_set: recursive_difference(field_set, fields)


def include(*patterns: tuple[str, ...]) -> FieldFilter:
    """Return a filter of field sets that keeps only the members whose path begins with one of the patterns.

    In a pattern, `*` matches any path element.
    """
    return lambda field_set: _included(field_set, list(patterns))


def _included(fields: FieldSet, patterns: list[tuple[str, ...]]) -> FieldSet:
    if () in patterns:
        return fields
    out: FieldSet = {}
    for element, branch in fields.items():
        remaining = [p[1:] for p in patterns if p[0] in ("*", element)]
        if element == SELF or not remaining:
            continue
        kept = branch_of(is_member(branch), _below(_included(branch, remaining)))
        if kept is not None:
            out[element] = kept
    return out
