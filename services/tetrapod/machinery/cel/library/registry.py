"""The Python functions behind the functions of CEL.

`plan` looks them up with `implementation`. The libraries are imported at the first lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from tetrapod.machinery.cel.library.signatures import Function, Functions
from tetrapod.machinery.cel.overload_errors import overload_error

_LIBRARIES: Final = (
    "conversions",
    "strings",
    "collections",
    "ordering",
    "regexes",
    "network",
    "quantities",
    "versions",
    "named_formats",
    "urls",
    "time_parts",
    "authorizer",
)
_EXACT: Final = frozenset({int, bool, float, str, bytes})


@lru_cache(maxsize=1)
def _functions() -> Functions:
    by_name: Functions = {}
    for library in _LIBRARIES:
        for name, signatures in import_module(f"tetrapod.machinery.cel.library.{library}").FUNCTIONS.items():
            by_name.setdefault(name, []).extend(signatures)
    return by_name


@lru_cache(maxsize=1)
def _estimates() -> Mapping[str, Callable[[Sequence[Any]], float]]:
    from tetrapod.machinery.cel.library import collections, regexes

    return {**collections.SECONDS, **regexes.SECONDS}


def seconds_of(name: str) -> Callable[[Sequence[Any]], float] | None:
    """Return the estimate of the time of a function that may take longer than its cost says, None for all others.

    It is called with the receiver and the arguments, and returns seconds.
    """
    return _estimates().get(name)


def implementation(name: str) -> Function:
    """Return the Python function of an operator (`_+_`) or function of CEL.

    It is called with the receiver, if there is one, and the arguments. It selects the overload by their classes, and
    raises `EvaluationError` if none matches.

    Raises:
        KeyError: CEL has no such function.
    """
    from tetrapod.machinery.cel.library.operators import OPERATORS

    operator = OPERATORS.get(name)
    return operator if operator is not None else _dispatcher(name)


@lru_cache(maxsize=512)
def _dispatcher(name: str) -> Function:
    signatures = _functions()[name]

    def call(*args: Any) -> Any:
        for classes, function in signatures:
            if len(classes) == len(args) and all(_takes(c, a) for c, a in zip(classes, args, strict=True)):
                return function(*args)
        raise overload_error(name, args)

    return call


def _takes(value_type: type, value: Any) -> bool:
    return value.__class__ is value_type if value_type in _EXACT else isinstance(value, value_type)
