"""Attributes: a variable or another operand, together with the fields and indexes that are applied to it.

`plan` builds them for selections, indexes and conditionals. An attribute has a cost of its own, usually 1, plus 1 for
every qualifier that was applied. A conditional costs nothing itself, and its branches cost only their qualifiers.

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
    """A field or index that is applied to a value.

    Args:
        key: the constant name or index, if `run` is None.
        run: computes the name or index at each evaluation.
        optional: whether it was written as `?.` or `[?]`, so that a missing field results in an empty optional.
        test: whether it is the field of `has()`, so that the result is whether the field is set.
    """

    __slots__ = ("key", "optional", "run", "test")

    def __init__(self, key: Any = None, run: Eval | None = None, *, optional: bool = False, test: bool = False) -> None:
        self.key = key
        self.run = run
        self.optional = optional
        self.test = test


class Attribute:
    """A variable, or the value of another operand, with the fields and indexes that are selected from it in order.

    For example, `self.a[0]` is the variable `self` with the qualifiers `a` and 0.

    Args:
        operand: evaluates the operand; None for a variable.
        slot: the index of the variable's value in `Frame.slots`.
        name: the name of the variable, for errors.
    """

    def __init__(self, operand: Eval | None, slot: int = -1, name: str = "") -> None:
        self._operand = operand
        self._slot = slot
        self._name = name
        self.qualifiers: list[Qualifier] = []

    def add(self, qualifier: Qualifier) -> None:
        """Append a field or index, which is applied after those added before."""
        self.qualifiers.append(qualifier)

    def resolver(self, own: int) -> Eval:
        """Return a function that evaluates the attribute, given a `Frame`, and adds the cost to the frame.

        Args:
            own: the cost of the attribute without its qualifiers; each qualifier that is applied costs 1 more.
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
        """Return an evaluation function for the usual case, in which all qualifiers are constant fields and indexes.

        It is faster than that of `_general`, which also handles optional qualifiers, `has()` and computed indexes.

        Args:
            root: evaluates the variable or operand to which the qualifiers are applied.
            own: the cost of the attribute without its qualifiers; each qualifier that is applied costs 1 more.
        """
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
        """Return the evaluation function for qualifiers of every kind: constant, computed, optional and of `has()`.

        Args:
            root: evaluates the variable or operand to which the qualifiers are applied.
            own: the cost of the attribute without its qualifiers; each qualifier that is applied costs 1 more.
        """
        qualifiers = self.qualifiers

        def walk(f: Frame) -> Any:
            value = root(f)
            if value.__class__ is Optional:
                return _through_optional(f, value, qualifiers, own)
            return _apply(f, value, qualifiers, own, optional=False)

        return walk


class Conditional:
    """A conditional `c ? a : b`. Fields and indexes that follow it apply to the branch that is evaluated.

    Args:
        condition: evaluates `c`.
        true: the attribute `a`.
        false: the attribute `b`.
    """

    def __init__(self, condition: Eval, true: Attribute | Conditional, false: Attribute | Conditional) -> None:
        self._condition = condition
        self._true = true
        self._false = false

    def add(self, qualifier: Qualifier) -> None:
        """Append a field or index to both branches."""
        self._true.add(qualifier)
        self._false.add(qualifier)

    def resolver(self, own: int) -> Eval:
        """Return a function that evaluates the condition and then one of the branches, given a `Frame`.

        Args:
            own: ignored, because a conditional itself costs nothing.
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
    """Apply qualifiers to the value inside an optional.

    Without qualifiers, or if the optional is empty, no qualifier is applied and the cost is only `own`.

    Args:
        f: the frame, whose cost increases.
        value: the optional.
        qualifiers: the fields and indexes, applied in order.
        own: the cost of the attribute itself; each qualifier that is applied costs 1 more.

    Returns:
        An optional, which is empty if a field or element is missing; or a bool if the last qualifier belongs to
        `has()`, False for an empty optional.

    Raises:
        EvaluationError: a key has a wrong type, or cannot be computed.
    """
    if value is NONE or not qualifiers:
        f.cost += own
        return (False if qualifiers and qualifiers[-1].test else value) if value is NONE else value
    return _apply(f, value.value, qualifiers, own, optional=True)


def _apply(f: Frame, value: Any, qualifiers: list[Qualifier], own: int, *, optional: bool) -> Any:
    """Apply qualifiers to a value in order.

    The result is an optional if `optional` is set or a qualifier is optional, and a bool if one belongs to `has()`. It
    is the empty optional if a field or element is missing at or after an optional qualifier.

    Args:
        f: the frame, whose cost increases.
        value: the value of the variable or operand to which the qualifiers belong.
        qualifiers: the fields and indexes that are selected one after another.
        own: the cost of the attribute itself; each qualifier that is applied costs 1 more.
        optional: whether `value` is the content of an optional, so that a missing field is not an error.

    Raises:
        EvaluationError: a field or element is missing and no qualifier up to there is optional, or a key has a wrong
            type or cannot be computed.
    """
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
    """Return the field `key` of a map or object, or the element at index `key` of a list.

    Raises:
        EvaluationError: the field or element does not exist, or the key has a wrong type.
    """
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
    """Return the field `key` of a map or object, or the element at index `key` of a list.

    The result is `_ABSENT` if the field or element does not exist, or if `value` is not a map, object or list.

    Raises:
        EvaluationError: the key has a wrong type.
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
    """Return a list index as an int: an int, a uint, or a double without a fraction.

    Raises:
        EvaluationError: the key is of another type, or has a fraction.
    """
    if key.__class__ is int or key.__class__ is Uint:
        return int(key)
    if key.__class__ is float:
        if key.is_integer():
            return int(key)
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_of_value(key).name}' in list")
