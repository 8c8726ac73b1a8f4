"""Validation of the CEL expressions that select devices: their length, variables, result type and estimated cost.

The CEL packages are imported only when the first expression is compiled.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go, and pkg/apis/resource/validation,
validateCELExpression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tetrapod.machinery import field
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.error_limits import MAX_TEXT
from tetrapod.machinery.field import LEFT_OUT, UNCOUNTED, FieldError

if TYPE_CHECKING:
    from tetrapod.machinery.cel.environment import Environment
    from tetrapod.machinery.cel.types import CelType

_LONGEST: Final = 10 * 1024
_DEAREST: Final = 1_000_000
_MOST_ATTRIBUTES: Final = 32
_LONGEST_DOMAIN: Final = 63
_LONGEST_ID: Final = 32
_LONGEST_VALUE: Final = 64


@dataclass(slots=True)
class Selectors:
    """The validation of all device selectors of one object. It ends when the errors fill a response.

    An object of 3 MB can have thousands of invalid expressions, and the syntax errors of one can take a tenth of a
    second.
    """

    _characters: int = 0
    """The length of the errors so far."""

    def validate(self, expression: str, path: str) -> list[FieldError]:
        """Validate one expression by `selector`, or return UNCOUNTED if a response cannot list further errors.

        Args:
            expression: the CEL expression.
            path: its field path, for the errors.
        """
        if self._characters > MAX_TEXT:
            return [UNCOUNTED]
        errors = selector(expression, path)
        self._characters += sum(MAX_TEXT if error is LEFT_OUT else len(error.body()) for error in errors)
        return errors


def selector(expression: str, path: str) -> list[FieldError]:
    """Validate the CEL expression of a device selector: at most 10 KiB, of type bool, and within the cost limit.

    Args:
        path: the field path of the expression, for the errors.
    """
    if len(expression.encode()) > _LONGEST:
        return [field.too_long(path, _LONGEST)]
    problem = _problem(expression)
    if problem is None:
        return []
    match problem.type:
        case "invalid":
            return [field.invalid(path, expression, problem.detail)]
        case "internal":
            return [field.internal_error(path, problem.detail)]
    return [field.forbidden(path, problem.detail)]


class _Problem(NamedTuple):
    """The error of an expression: the type of its FieldError ("invalid", "internal" or "forbidden"), and its text."""

    type: str
    detail: str


@bounded(count=1024, size=4 << 20, largest=64 << 10)
def _problem(expression: str) -> _Problem | None:
    """Compile an expression and estimate its cost. Return its error, or None if it is valid.

    The results are cached, because the requests of a claim, and the claims of a workload, repeat expressions.
    """
    from tetrapod.machinery.cel.errors import CompileError

    try:
        program = _environment().compile(expression)
    except CompileError as error:
        if error.output_type is None:
            return _Problem("invalid", error.full)
        return _wrong_type(error.output_type) or _Problem("internal", error.full)
    if (problem := _wrong_type(program.output_type)) is not None:
        return problem
    return _Problem("forbidden", "too complex, exceeds cost limit") if program.cost_estimate().max > _DEAREST else None


def _wrong_type(actual: CelType) -> _Problem | None:
    from tetrapod.machinery.cel import types

    if actual in (types.BOOL, types.ANY):
        return None
    return _Problem("invalid", f"must evaluate to bool or the unknown type, not {types.go_text(actual)}")


@cache
def _environment() -> Environment:
    """Return the CEL environment with the variable `device`; built once.

    The variable has the device's driver, and its attributes and capacities by domain and name.
    """
    from tetrapod.machinery.cel import types
    from tetrapod.machinery.cel.declarations import QUANTITY, DeclType, map_decl, object_decl
    from tetrapod.machinery.cel.environment import Environment

    domain, name, driver = (
        DeclType("string", types.STRING, 2, max_elements=most)
        for most in (_LONGEST_DOMAIN, _LONGEST_ID, _LONGEST_DOMAIN)
    )
    attribute = DeclType("any", types.ANY, 1, max_elements=_LONGEST_VALUE)
    device = object_decl(
        "kubernetes.DRADevice",
        {
            "driver": driver,
            "allowMultipleAllocations": DeclType("bool", types.BOOL, 4, max_elements=1),
            "attributes": map_decl(domain, map_decl(name, attribute, _MOST_ATTRIBUTES), _MOST_ATTRIBUTES),
            "capacity": map_decl(domain, map_decl(name, QUANTITY, _MOST_ATTRIBUTES), _MOST_ATTRIBUTES),
        },
    )
    return Environment({"device": device}, binds=True)
