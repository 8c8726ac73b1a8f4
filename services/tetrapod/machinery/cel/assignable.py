"""The assignability of types, which also binds type parameters to types.

The checker uses it to find the overload that accepts the arguments of a call. A `Substitutions` stores the bindings,
and removes those of an overload that does not match.

Upstream: cel-go checker/types.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.machinery.cel.types import DYN, CelType

_DYN = ("dyn", "any")
_NULLABLE = ("opaque", "struct", "any", "duration", "timestamp")
_SCALARS = ("bool", "bytes", "double", "int", "string", "uint", "any", "duration", "timestamp", "struct")


def is_dyn(kind: CelType) -> bool:
    """Return whether a type is `dyn` or `any`."""
    return kind.kind in _DYN


def is_optional(kind: CelType) -> bool:
    """Return whether a type is an optional."""
    return kind.kind == "opaque" and kind.name == "optional_type"


def unwrapped(kind: CelType) -> tuple[CelType, bool]:
    """Return the type inside an optional and True, or the type itself and False if it is not an optional."""
    return (kind.params[0], True) if is_optional(kind) else (kind, False)


def has_params(kind: CelType) -> bool:
    """Return whether a type is or contains a type parameter."""
    return kind.kind == "param" or any(has_params(p) for p in kind.params)


class Substitutions:
    """The types to which type parameters have been bound while one expression was checked.

    For example, checking `[1, 2]` against `list(A)` binds the parameter A to int.
    """

    def __init__(self) -> None:
        self._bound: dict[str, CelType] = {}
        self._log: list[tuple[str, CelType | None]] = []
        self._count = 0

    def fresh(self) -> CelType:
        """Return a type parameter with a new name."""
        self._count += 1
        return CelType("param", f"_var{self._count - 1}")

    def assign(self, target: CelType, value: CelType) -> bool:
        """Return whether a value of type `value` is assignable to type `target`.

        If it is, the type parameters in both types are bound so that the types match; otherwise no binding changes.
        """
        return self.assign_all((target,), (value,))

    def assign_all(self, targets: Sequence[CelType], values: Sequence[CelType]) -> bool:
        """Return whether each type in `values` is assignable to the type in `targets` at the same position.

        If so, the type parameters in them are bound so that the types match. If not, or if the numbers of types differ,
        the result is False and no binding changes.
        """
        if len(targets) != len(values):
            return False
        mark = len(self._log)
        if all(self._assign(t, v) for t, v in zip(targets, values, strict=True)):
            del self._log[:]
            return True
        for name, previous in reversed(self._log[mark:]):
            if previous is None:
                del self._bound[name]
            else:
                self._bound[name] = previous
        del self._log[mark:]
        return False

    def apply(self, kind: CelType, *, to_dyn: bool = False) -> CelType:
        """Return a type with its bound parameters replaced.

        With `to_dyn`, parameters that are not bound become `dyn`.
        """
        while kind.kind == "param":
            bound = self._bound.get(kind.name)
            if bound is None:
                return DYN if to_dyn else kind
            kind = bound
        if not kind.params:
            return kind
        params = tuple(self.apply(p, to_dyn=to_dyn) for p in kind.params)
        return kind if params == kind.params else CelType(kind.kind, kind.name, params)

    def _bind(self, name: str, kind: CelType) -> None:
        self._log.append((name, self._bound.get(name)))
        self._bound[name] = kind

    def _assign(self, t1: CelType, t2: CelType) -> bool:
        """Return whether a value of type `t2` is assignable to type `t1`.

        Bindings are kept even if it is not; `assign_all` removes them then.
        """
        if t2.kind == "param":
            valid, bound = self._substitutes(t1, t2)
            if valid:
                return True
            if bound:
                return False
        if t1.kind == "param":
            return self._substitutes(t2, t1)[0]
        if t1.kind in ("dyn", "any", "error") or t2.kind in ("dyn", "any", "error"):
            return True
        if t1.kind == "null" or t2.kind == "null":
            other = t2 if t1.kind == "null" else t1
            return other.kind in _NULLABLE or other.kind == "null"
        if t1.kind in _SCALARS:
            return t1.kind == t2.kind and t1.name == t2.name
        if t1.kind == "type":
            return t2.kind == "type"
        if t1.kind != t2.kind or t1.name != t2.name or len(t1.params) != len(t2.params):
            return False
        return all(self._assign(p1, p2) for p1, p2 in zip(t1.params, t2.params, strict=True))

    def _substitutes(self, t1: CelType, param: CelType) -> tuple[bool, bool]:
        """Bind a type parameter to a type, or compare the type with the parameter's existing binding.

        If the existing binding is assignable to the type, the parameter is bound to the more general of the two.

        Args:
            t1: the type to which the parameter is bound, or which is compared with its binding.
            param: the type parameter.

        Returns:
            Two bools. The first is whether the type matches the parameter, or the parameter's existing binding if it
            has one. The second is whether the parameter was bound before or equals the type. If both are False, the
            caller tries to bind `t1`, if that is a parameter too.
        """
        if t1 == param:
            return True, True
        bound = self._bound.get(param.name)
        if bound is not None:
            if t1 == bound:
                return True, True
            if self._assign(t1, bound):
                general = most_general(t1, bound)
                if self._absent(param, general):
                    self._bind(param.name, general)
                return True, True
            return False, True
        if self._absent(param, t1):
            self._bind(param.name, t1)
            return True, False
        return False, False

    def _absent(self, param: CelType, within: CelType) -> bool:
        """Return whether a parameter does not occur inside a type, nor in the bindings of parameters there.

        This is the occurs check, which prevents recursive types. A type that is the parameter itself contains it.
        """
        if param == within:
            return False
        if within.kind == "param":
            bound = self._bound.get(within.name)
            return bound is None or self._absent(param, bound)
        return all(self._absent(param, p) for p in within.params)


def most_general(t1: CelType, t2: CelType) -> CelType:
    """Return the less specific of two types: `t1` if it is less specific than `t2` or equal, otherwise `t2`."""
    return t1 if _less_specific(t1, t2) else t2


def _less_specific(t1: CelType, t2: CelType) -> bool:
    """Return whether `t1` is less specific than `t2`, or equal to it."""
    if is_dyn(t1) or t1.kind == "param":
        return True
    if is_dyn(t2) or t2.kind == "param" or t1.kind != t2.kind:
        return False
    if t1.kind == "type":
        return True
    if t1.kind in ("opaque", "list", "map"):
        same = t1.name == t2.name and len(t1.params) == len(t2.params)
        return same and all(_less_specific(a, b) for a, b in zip(t1.params, t2.params, strict=True))
    return t1 == t2
