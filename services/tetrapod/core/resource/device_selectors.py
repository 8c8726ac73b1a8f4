"""Validation of the CEL expressions that select devices: their length, variables, result type and estimated cost.

The CEL packages are imported only when the first expression is compiled.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go, and pkg/apis/resource/validation,
validateCELExpression.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError

if TYPE_CHECKING:
    from tetrapod.machinery.cel.environment import Environment
    from tetrapod.machinery.cel.types import CelType

_LONGEST: Final = 10 * 1024
_DEAREST: Final = 1_000_000
_MOST_ATTRIBUTES: Final = 32
_LONGEST_DOMAIN: Final = 63
_LONGEST_ID: Final = 32
_LONGEST_VALUE: Final = 64


def selector(expression: str, path: str) -> list[FieldError]:
    """Validate the CEL expression of a device selector: at most 10 KiB, of type bool, and within the cost limit.

    Args:
        path: the field path of the expression, for the errors.
    """
    if len(expression.encode()) > _LONGEST:
        return [field.too_long(path, _LONGEST)]
    from tetrapod.machinery.cel.errors import CompileError

    try:
        program = _environment().compile(expression)
    except CompileError as error:
        if error.output_type is None:
            return [field.invalid(path, expression, error.full)]
        return _wrong_type(error.output_type, expression, path) or [field.internal_error(path, error.full)]
    if type_errors := _wrong_type(program.output_type, expression, path):
        return type_errors
    if program.cost_estimate().max > _DEAREST:
        return [field.forbidden(path, "too complex, exceeds cost limit")]
    return []


def _wrong_type(actual: CelType, expression: str, path: str) -> list[FieldError]:
    from tetrapod.machinery.cel import types

    if actual in (types.BOOL, types.ANY):
        return []
    return [field.invalid(path, expression, f"must evaluate to bool or the unknown type, not {types.go_text(actual)}")]


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
