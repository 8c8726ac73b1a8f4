"""The errors of calls whose arguments match no overload at run time.

Upstream: cel-go interpreter/interpretable.go (traits of the first argument, and receivers that dispatch calls
themselves) and common/decls (functions of which no overload matches).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.values import Duration, ObjectLike, Timestamp, Uint, no_such_overload, type_of_value

COMPARABLE: Final = (int, Uint, float, bool, Duration, Timestamp, str, bytes)
"""The classes of ordered values. Upstream: traits.Comparer."""
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
"""Functions whose overloads share one implementation without a trait."""


def overload_error(name: str, args: Sequence[Any]) -> EvaluationError:
    """Return the error that upstream reports for a call whose arguments match no overload.

    Args:
        name: the name of the function.
        args: the values of the arguments, beginning with the receiver if there is one.
    """
    if name in _UNNAMED:
        return no_such_overload()
    traits = _TRAITS.get(name)
    if traits is not None:
        return (
            no_such_overload()
            if has(traits, args[0]) or has(_RECEIVERS, args[0])
            else EvaluationError(f"no such overload: {name}")
        )
    type_names = [type_of_value(arg).name for arg in args]
    if name == "flatten":
        return EvaluationError(f"no such overload: {type_names[0]}.flatten({', '.join(type_names[1:])})")
    return EvaluationError(f"no such overload: {name}({', '.join(type_names)})")


def has(traits: tuple[type, ...], value: Any) -> bool:
    """Return whether a value is an instance of one of the classes in `traits`. A bool is not an int here."""
    return value.__class__ in traits or (isinstance(value, (list, ObjectLike)) and isinstance(value, traits))
