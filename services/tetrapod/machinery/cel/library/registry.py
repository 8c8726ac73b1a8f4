"""`implementation`: the Python function behind a function of CEL, which looks at its arguments' classes itself.

The libraries are imported with the first function that is asked for.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from tetrapod.machinery.cel.library.signatures import Function, Functions
from tetrapod.machinery.cel.unsuited import unsuited

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
    "authorizer",
)
_EXACT: Final = frozenset({int, bool, float, str, bytes})


@lru_cache(maxsize=1)
def _functions() -> Functions:
    found: Functions = {}
    for library in _LIBRARIES:
        for name, signatures in import_module(f"tetrapod.machinery.cel.library.{library}").FUNCTIONS.items():
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
        raise unsuited(name, args)

    return call


def _takes(wanted: type, value: Any) -> bool:
    return value.__class__ is wanted if wanted in _EXACT else isinstance(value, wanted)
