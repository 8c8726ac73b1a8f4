"""Field sets: which fields of an object somebody owns, in the form that `fieldsV1` has on the wire.

A set is a dictionary of path elements (`pathelement.py`) to the *branch* below each. A branch `{}` is a member without
members below it; otherwise the element itself is a member if the branch has `.`. So decoding is JSON decoding, and most
sets of two versions of an object share their parts. Sets are never changed, and every dictionary of one is sorted as
upstream writes it. Follows sigs.k8s.io/structured-merge-diff/fieldpath (set.go, serialize.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from tetrapod.machinery.fieldmanager.pathelement import SELF, canonical, order

FieldSet: TypeAlias = dict[str, Any]
Branch: TypeAlias = dict[str, Any]
FieldFilter: TypeAlias = Callable[[FieldSet], FieldSet]


def of_paths(paths: Iterable[Iterable[str]]) -> FieldSet:
    """The set of paths, each a sequence of path elements."""
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
    """The set of paths, each a sequence of field names."""
    return of_paths([f"f:{name}" for name in path] for path in paths)


def decode(fields: Any) -> FieldSet:
    """Check a set that came over the wire, in its canonical form; elements of unknown kinds are left out.

    Raises:
        ValueError: it is no field set.
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
            branch = _decode(below) if below else {}
            out[known] = _union(out[known], branch) if known in out else branch
    if SELF in out and len(out) == 1:
        return {}
    return ordered(out)


def ordered(branch: Branch) -> Branch:
    """One level of a branch in upstream's order."""
    if len(branch) < 2:
        return branch
    return {element: branch[element] for element in sorted(branch, key=order)}


def is_member(branch: Branch | None) -> bool:
    return branch is not None and (not branch or SELF in branch)


def has(fields: FieldSet, path: Iterable[str]) -> bool:
    branch: Branch | None = None
    below: Branch | None = fields
    for element in path:
        branch = below = below.get(element) if below else None
    return is_member(branch)


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The members' paths in upstream's order: of each level first all members, then what is below them."""
    for element, branch in fields.items():
        if element != SELF and is_member(branch):
            yield (*prefix, element)
    for element, branch in fields.items():
        if element != SELF and branch:
            yield from paths(branch, (*prefix, element))


def branch_of(member: bool, below: Branch) -> Branch | None:
    """The branch of an element that is a member or not, with `below` (without `.`) under it; None for nothing at all."""
    if not below:
        return {} if member else None
    return {SELF: {}, **below} if member else below


def union(left: FieldSet, right: FieldSet) -> FieldSet:
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
    grown = False
    for element, branch in right.items():
        if element in out:
            out[element] = _union(out[element], branch) if element != SELF else {}
        else:
            out[element] = branch
            grown = True
    return ordered(out) if grown else out


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
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
    """`left` without the members of `right`; what is below a removed member stays."""
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
        rest = branch_of(is_member(branch) and not is_member(other), _below(difference(branch, other)))
        if rest is not None:
            out[element] = rest
    return out


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """`left` without the members of `right` and all that is below them."""
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
            rest = branch_of(is_member(branch), below)
            if rest is not None:
                out[element] = rest
    return out


def _below(branch: Branch) -> Branch:
    return {k: v for k, v in branch.items() if k != SELF} if SELF in branch else branch


def exclude(fields: FieldSet) -> FieldFilter:
    """A filter that drops these fields with all that is below them (a strategy's reset fields)."""
    return lambda of: recursive_difference(of, fields)


def include(*patterns: tuple[str, ...]) -> FieldFilter:
    """A filter that keeps what begins with one of these paths of elements; the element `*` matches any."""
    return lambda of: _included(of, list(patterns))


def _included(fields: FieldSet, patterns: list[tuple[str, ...]]) -> FieldSet:
    if () in patterns:
        return fields
    out: FieldSet = {}
    for element, branch in fields.items():
        rest = [p[1:] for p in patterns if p[0] in ("*", element)]
        if element == SELF or not rest:
            continue
        kept = branch_of(is_member(branch), _below(_included(branch, rest)))
        if kept is not None:
            out[element] = kept
    return out
