"""`implementation`: the Python function behind a function of CEL, which looks at its arguments' classes itself.

A library declares `FUNCTIONS`: a name to functions with the classes that they take, tried in order; `object` takes anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, TypeAlias

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.values import type_of_value

Function: TypeAlias = Callable[..., Any]
Signature: TypeAlias = tuple[type, ...]
Functions: TypeAlias = dict[str, list[tuple[Signature, Function]]]

_LIBRARIES: Final = (
    "conversions",
    "strings",
    "collections",
    "ordering",
    "regexes",
    "network",
    "quantities",
    "versions",
    "named",
    "urls",
    "moments",
)
_EXACT: Final = frozenset({int, bool, float, str, bytes})


@lru_cache(maxsize=1)
def _functions() -> Functions:
    from tetrapod.machinery.cel import authorizer

    found: Functions = {}
    modules = [import_module(f"tetrapod.machinery.cel.library.{name}") for name in _LIBRARIES]
    for module in (*modules, authorizer):
        for name, signatures in module.FUNCTIONS.items():
            found.setdefault(name, []).extend(signatures)
    return found


def implementation(name: str) -> Function:
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
        shown = ", ".join(type_of_value(a).name for a in args)
        raise EvaluationError(f"no such overload: {name}({shown})")

    return call


def _takes(wanted: type, value: Any) -> bool:
    return value.__class__ is wanted if wanted in _EXACT else isinstance(value, wanted)
