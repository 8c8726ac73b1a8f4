"""Run-time values of CEL that JSON has no class for, and values that are made when they are first used.

JSON as it was decoded is used as it is: None, bool, int (int64), float, str, list, dict. bytes are `bytes`.
Upstream: cel-go common/types; k8s.io/apiserver/pkg/cel/lazy and mutation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Lazy:
    """A binding that is made at its first use (`Lazy(lambda: …)`) and kept for the evaluation."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class LazyFields:
    """An object whose fields are made at first use and kept: `variables` of a policy.

    A function may raise EvaluationError: so does every use of its field.
    """

    __slots__ = ("_made", "functions", "type_name")

    def __init__(self, type_name: str, functions: Mapping[str, Callable[[], Any]]) -> None:
        self.type_name = type_name
        self.functions = functions
        self._made: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """KeyError where there is no such field."""
        if name not in self._made:
            self._made[name] = self.functions[name]()
        return self._made[name]


class StructValue:
    """What `Object.spec{…}` or `JSONPatch{…}` makes: a type's name and the given fields, which are values themselves.

    `json_value()` (below) turns it into JSON.
    """

    __slots__ = ("fields", "type_name")

    def __init__(self, type_name: str, fields: dict[str, Any]) -> None:
        self.type_name = type_name
        self.fields = fields
