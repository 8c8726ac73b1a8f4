"""Attributes: a variable or another operand, together with the fields and indexes that are applied to it.

`plan` builds them for selections, indexes and conditionals. An attribute costs 1, plus 1 for every qualifier that was
applied. A conditional costs nothing itself, and its branches cost only their qualifiers.

Upstream: cel-go interpreter/attributes.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.frame import MISSING, Eval, Failed, Frame, no_such_attribute
from tetrapod.machinery.cel.values import (
    NONE,
    Lazy,
    ObjectLike,
    Optional,
    Uint,
    find,
    no_such_overload,
    shown,
    type_of_value,
)

_ABSENT: Final = object()
_ODD: Final = (Lazy, Failed, type(MISSING))


class Qualifier:
    """A field or index: a constant (`key`) or computed by a function (`run`).

    `optional` marks `?.` and `[?]`; `test` marks the field of `has()`.
    """

    __slots__ = ("key", "optional", "run", "test")

    def __init__(self, key: Any = None, run: Eval | None = None, *, optional: bool = False, test: bool = False) -> None:
        self.key = key
        self.run = run
        self.optional = optional
        self.test = test


class Attribute:
    """An attribute of a variable (`slot`, `name`) or of another operand."""

    def __init__(self, operand: Eval | None, slot: int = -1, name: str = "") -> None:
        self._operand = operand
        self._slot = slot
        self._name = name
        self.qualifiers: list[Qualifier] = []

    def add(self, qualifier: Qualifier) -> None:
        """Append a qualifier."""
        self.qualifiers.append(qualifier)

    def resolver(self, own: int) -> Eval:
        """Return a function that evaluates the attribute.

        Args:
            own: the cost of the attribute itself; each qualifier that is applied costs 1 more.
        """
        root = self._operand or self._variable()
        if all(q.run is None and not q.optional and not q.test for q in self.qualifiers):
            return self._plain(root, own)
        return self._general(root, own)

    def _variable(self) -> Eval:
        slot, name = self._slot, self._name

        def read(f: Frame) -> Any:
            value = f.slots[slot]
            if value.__class__ in _ODD:
                if value.__class__ is Lazy:
                    value = f.slots[slot] = value.make()
                elif value is MISSING:
                    raise no_such_attribute(name)
                elif value.__class__ is Failed:
                    raise value.failure.error()
            return value

        return read

    def _plain(self, root: Eval, own: int) -> Eval:
        """Return the fast evaluation function, for constant qualifiers without `?` and `has()`."""
        keys = tuple(q.key for q in self.qualifiers)
        if not keys:
            if own == 0:
                return root

            def ident(f: Frame) -> Any:
                f.cost += own
                return root(f)

            return ident
        total = own + len(keys)

        def walk(f: Frame) -> Any:
            value = root(f)
            if value.__class__ is Optional:
                return _through_optional(f, value, self.qualifiers, own)
            f.cost += total
            left = len(keys)
            try:
                for key in keys:
                    left -= 1
                    if value.__class__ is dict and key.__class__ is str:
                        value = value[key]
                    else:
                        value = qualify(value, key)
            except KeyError:
                f.cost -= left
                raise EvaluationError(f"no such key: {shown(keys[-1 - left])}") from None
            except EvaluationError:
                f.cost -= left
                raise
            return value

        return walk

    def _general(self, root: Eval, own: int) -> Eval:
        """Return the evaluation function for any qualifiers."""
        qualifiers = self.qualifiers

        def walk(f: Frame) -> Any:
            value = root(f)
            if value.__class__ is Optional:
                return _through_optional(f, value, qualifiers, own)
            return _apply(f, value, qualifiers, own, optional=False)

        return walk


class Conditional:
    """A conditional `c ? a : b`; qualifiers that follow it apply to either branch."""

    def __init__(self, condition: Eval, true: Attribute | Conditional, false: Attribute | Conditional) -> None:
        self._condition = condition
        self._true = true
        self._false = false

    def add(self, qualifier: Qualifier) -> None:
        """Append a qualifier to both branches."""
        self._true.add(qualifier)
        self._false.add(qualifier)

    def resolver(self, own: int) -> Eval:
        """Return a function that evaluates the condition and then one branch.

        `own` is ignored: a conditional costs nothing itself.
        """
        condition, true, false = self._condition, self._true.resolver(0), self._false.resolver(0)

        def choose(f: Frame) -> Any:
            value = condition(f)
            if value is True:
                return true(f)
            if value is False:
                return false(f)
            raise no_such_overload()

        return choose


def _through_optional(f: Frame, value: Optional, qualifiers: list[Qualifier], own: int) -> Any:
    """Apply qualifiers to the value inside an optional root. The result is an optional, or a bool for `has()`."""
    if value is NONE or not qualifiers:
        f.cost += own
        return (False if qualifiers and qualifiers[-1].test else value) if value is NONE else value
    return _apply(f, value.value, qualifiers, own, optional=True)


def _apply(f: Frame, value: Any, qualifiers: list[Qualifier], own: int, *, optional: bool) -> Any:
    """Apply qualifiers one after another. The result is an optional if `optional` is set or a qualifier is optional."""
    f.cost += own
    for q in qualifiers:
        optional = optional or q.optional
        key = q.key if q.run is None else q.run(f)
        if not optional and not q.test:
            f.cost += 1
            value = qualify(value, key)
            continue
        selected = lookup(value, key)
        if q.test:
            f.cost += selected is not _ABSENT or not optional
            return selected is not _ABSENT
        if selected is _ABSENT:
            return NONE
        f.cost += 1
        value = selected
    return Optional(value) if optional else value


def qualify(value: Any, key: Any) -> Any:
    """Return the field or element of a value. Raises EvaluationError if it is missing or the key has the wrong type."""
    if value.__class__ is dict or isinstance(value, ObjectLike):
        try:
            return find(value, _hashable(key))
        except KeyError:
            raise EvaluationError(f"no such key: {shown(key)}") from None
    if isinstance(value, list):
        i = _index(key)
        if 0 <= i < len(value):
            return value[i]
        raise EvaluationError(f"index out of bounds: {shown(key)}")
    raise EvaluationError(f"no such key: {shown(key)}")


def lookup(value: Any, key: Any) -> Any:
    """Return the field or element of a value, or `_ABSENT` if it is missing.

    Raises EvaluationError for a key of a wrong type.
    """
    if value.__class__ is dict or isinstance(value, ObjectLike):
        try:
            return find(value, _hashable(key))
        except KeyError:
            return _ABSENT
    if isinstance(value, list):
        i = _index(key)
        return value[i] if 0 <= i < len(value) else _ABSENT
    return _ABSENT


def _hashable(key: Any) -> Any:
    if isinstance(key, (str, int, float)):
        return key
    raise EvaluationError(f"unsupported key type: {type_of_value(key)}")


def _index(key: Any) -> int:
    """Return the index that a key means. Raises EvaluationError for a key that cannot be an index."""
    if key.__class__ is int or key.__class__ is Uint:
        return int(key)
    if key.__class__ is float:
        if key.is_integer():
            return int(key)
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_of_value(key).name}' in list")
