"""The overloads of all functions, read from `data/overloads.txt`.

Each line of the file is `function overload signature`, in upstream's order. The functions are those of cel-go's
standard library, and of the libraries that Kubernetes 1.37 enables for new expressions: those of 1.36, its minimum
compatibility version. Only some expressions can use the functions of `OPTIONAL`.

Upstream: k8s.io/apiserver/pkg/cel/environment/base.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.types import CelType

PATCH_FUNCTIONS: Final = frozenset({"jsonpatch.escapeKey"})
OPTIONAL: Final = PATCH_FUNCTIONS | {"includes"}
"""The functions that an expression can use only if its environment has them."""
_LINE: Final = re.compile(r"(\S+) (\S+) (?:([^()].*)\.)?\((.*)\) -> (.+)")
_BASIC: Final = {
    "any": types.ANY,
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "duration": types.DURATION,
    "dyn": types.DYN,
    "int": types.INT,
    "null": types.NULL,
    "string": types.STRING,
    "timestamp": types.TIMESTAMP,
    "uint": types.UINT,
}


class Overload(NamedTuple):
    """An overload of a function.

    Attributes:
        id: cel-go's name of the overload, such as `add_string`.
        member: whether it is called on a receiver.
        args: the types of the arguments, beginning with that of the receiver.
        result: the type of the result.
        params: the names of its type parameters.
    """

    id: str
    member: bool
    args: tuple[CelType, ...]
    result: CelType
    params: frozenset[str]


@lru_cache(maxsize=1)
def functions() -> dict[str, tuple[Overload, ...]]:
    """Return the overloads of each function, by its name. The file is read at the first call."""
    by_name: dict[str, list[Overload]] = {}
    for line in (Path(__file__).parent / "data" / "overloads.txt").read_text("utf-8").splitlines():
        match = _LINE.fullmatch(line)
        assert match is not None, line
        name, overload, target, args, result = match.groups()
        parts = tuple(parse_type(text) for text in ([target] if target else []) + _split(args))
        kinds = (*parts, parse_type(result))
        by_name.setdefault(name, []).append(Overload(overload, bool(target), parts, kinds[-1], _params(kinds)))
    return {name: tuple(overloads) for name, overloads in by_name.items()}


@lru_cache(maxsize=256)
def parse_type(text: str) -> CelType:
    """Parse a type in the notation of error messages, such as `list(int)`. A single letter is a type parameter."""
    if text in _BASIC:
        return _BASIC[text]
    name, paren, inner = text.partition("(")
    if paren:
        params = tuple(parse_type(part) for part in _split(inner[:-1]))
        match name:
            case "list":
                return types.list_of(*params)
            case "map":
                return types.map_of(*params)
            case "type":
                return types.type_of(*params)
        return types.opaque(name, *params)
    if len(text) == 1:
        return types.type_param(text)
    return types.opaque(text) if text.startswith("net.") else types.object_type(text)


def _split(text: str) -> list[str]:
    """Split a list of types at the commas outside of parentheses; [] for an empty text."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text else []


def _params(kinds: tuple[CelType, ...]) -> frozenset[str]:
    """Return the names of the type parameters that occur in some types at any depth."""
    names: set[str] = set()
    todo = list(kinds)
    while todo:
        kind = todo.pop()
        if kind.kind == "param":
            names.add(kind.name)
        todo += kind.params
    return frozenset(names)
