"""What is said where a function does not take the values that it is given.

Upstream: cel-go interpreter/interpretable.go (a function's trait, which its first argument must have, and receivers, which answer for
themselves) and common/decls (overloads of a function, of which none suits).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.values import Duration, ObjectLike, Timestamp, Uint, no_such_overload, type_of_value

COMPARABLE: Final = (int, Uint, float, bool, Duration, Timestamp, str, bytes)
"""What has an order (upstream: traits.Comparer)."""
ADDABLE: Final = (int, Uint, float, str, bytes, list, Duration, Timestamp)
_RECEIVERS: Final = (str, Duration, Timestamp)
_TRAITS: Final[dict[str, tuple[type, ...]]] = {
    "_+_": ADDABLE,
    "_-_": (int, Uint, float, Duration, Timestamp),
    "_*_": (int, Uint, float),
    "_/_": (int, Uint, float),
    "_%_": (int, Uint),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), COMPARABLE),
    "-_": (int, float, bool, Duration),
    "size": (str, bytes, list, dict, ObjectLike),
    "matches": (str,),
    "sort": (list,),
}
_UNNAMED: Final = frozenset({"contains", "startsWith", "endsWith"})
"""One function for all their overloads, without a trait."""


def unsuited(name: str, args: Sequence[Any]) -> EvaluationError:
    if name in _UNNAMED:
        return no_such_overload()
    traits = _TRAITS.get(name)
    if traits is not None:
        return no_such_overload() if has(traits, args[0]) or has(_RECEIVERS, args[0]) else EvaluationError(f"no such overload: {name}")
    shown = [type_of_value(arg).name for arg in args]
    if name == "flatten":
        return EvaluationError(f"no such overload: {shown[0]}.flatten({', '.join(shown[1:])})")
    return EvaluationError(f"no such overload: {name}({', '.join(shown)})")


def has(traits: tuple[type, ...], value: Any) -> bool:
    """Whether a value is of one of these kinds; a bool is no int here."""
    return value.__class__ in traits or (isinstance(value, (list, ObjectLike)) and isinstance(value, traits))
