"""Validation of the CEL expressions about devices: their length, variables, result type and estimated cost.

They select devices, or compute derived attributes of them.

The CEL packages are imported only when the first expression is compiled.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go, and pkg/apis/resource/validation,
validateCELExpression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tetrapod.generic.configuration import feature_gates
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


class Expression(NamedTuple):
    """A CEL expression, and what its rules depend on.

    Attributes:
        text: the expression.
        derived: whether the expression computes a derived attribute. Other expressions select devices.
        shared: whether the gate DRAConsumableCapacity is enabled, which declares `device.allowMultipleAllocations`.
        lists: whether the gate DRAListTypeAttributes is enabled: attributes may be lists, and `includes` is a function.
    """

    text: str
    derived: bool
    shared: bool
    lists: bool


@dataclass(slots=True)
class Selectors:
    """The validation of all expressions of one object. It ends when the errors fill a response.

    An object of 3 MB can have thousands of invalid expressions, and the syntax errors of one can take a tenth of a
    second.

    Attributes:
        derived_cost: the estimated cost of all valid expressions of derived attributes so far.
    """

    derived_cost: int = 0
    _characters: int = 0
    """The length of the errors so far."""

    def validate(self, expression: str, path: str, *, derived: bool = False) -> list[FieldError]:
        """Validate one expression by `check`, or return UNCOUNTED if a response cannot list further errors.

        Args:
            expression: the CEL expression.
            path: its field path, for the errors.
            derived: whether it computes a derived attribute.
        """
        if self._characters > MAX_TEXT:
            return [UNCOUNTED]
        shared, lists = map(feature_gates.enabled, ("DRAConsumableCapacity", "DRAListTypeAttributes"))
        errors, cost = check(Expression(expression, derived, shared, lists), path)
        if derived:
            self.derived_cost += cost
        self._characters += sum(MAX_TEXT if error is LEFT_OUT else len(error.body()) for error in errors)
        return errors

    @property
    def is_too_complex(self) -> bool:
        """Whether the expressions of derived attributes together exceed the cost limit of a claim."""
        return self.derived_cost > _DEAREST


def check(expression: Expression, path: str) -> tuple[list[FieldError], int]:
    """Return the errors of an expression, and its estimated cost, which is 0 for an expression that is invalid.

    It has at most 10 KiB, is within the cost limit, and its type is bool or, for a derived attribute, a scalar or a
    list of scalars.

    Args:
        expression: the expression.
        path: its field path, for the errors.
    """
    if len(expression.text.encode()) > _LONGEST:
        return [field.too_long(path, _LONGEST)], 0
    problem, cost = _compiled(expression)
    if problem is not None:
        if problem.type == "internal":
            return [field.internal_error(path, problem.detail)], 0
        return [field.invalid(path, expression.text, problem.detail)], 0
    return [field.forbidden(path, "too complex, exceeds cost limit")] if cost > _DEAREST else [], cost


class _Problem(NamedTuple):
    """The error of an expression: the type of its FieldError ("invalid" or "internal"), and its text."""

    type: str
    detail: str


@bounded(count=1024, size=4 << 20, largest=64 << 10)
def _compiled(expression: Expression) -> tuple[_Problem | None, int]:
    """Compile an expression. Return its error, or None if it is valid, and its estimated cost.

    The results are cached, because the requests of a claim, and the claims of a workload, repeat expressions.
    """
    from tetrapod.machinery.cel.errors import CompileError

    try:
        program = _environment(expression.shared, expression.lists).compile(expression.text)
    except CompileError as error:
        if error.output_type is None:
            return _Problem("invalid", error.full), 0
        return _wrong_type(error.output_type, expression) or _Problem("internal", error.full), 0
    if (problem := _wrong_type(program.output_type, expression)) is not None:
        return problem, 0
    return None, program.cost_estimate().max


def _wrong_type(actual: CelType, expression: Expression) -> _Problem | None:
    from tetrapod.machinery.cel import types

    shown = types.go_text(actual)
    if not expression.derived:
        if actual in (types.BOOL, types.DYN if expression.lists else types.ANY):
            return None
        return _Problem("invalid", f"must evaluate to bool or the unknown type, not {shown}")
    scalars = (types.BOOL, types.INT, types.STRING, types.ANY, types.DYN, types.object_type("kubernetes.Semver"))
    if actual in scalars or (expression.lists and actual.kind == "list" and actual.params[0] in scalars):
        return None
    expected = "a primitive scalar (string, integer, boolean, semver)"
    if expression.lists:
        expected += " or a list of these scalars"
    return _Problem("invalid", f"must evaluate to {expected}, not {shown}")


@cache
def _environment(shared: bool, lists: bool) -> Environment:
    """Return the CEL environment with the variable `device`; built once.

    The variable has the device's driver, and its attributes and capacities by domain and name.

    Args:
        shared: whether it has the field allowMultipleAllocations.
        lists: whether attributes may be lists. Their type is then dynamic.
    """
    from tetrapod.machinery.cel import types
    from tetrapod.machinery.cel.declarations import QUANTITY, DeclType, map_decl, object_decl
    from tetrapod.machinery.cel.environment import Environment

    domain, name, driver = (
        DeclType("string", types.STRING, 2, max_elements=most)
        for most in (_LONGEST_DOMAIN, _LONGEST_ID, _LONGEST_DOMAIN)
    )
    attribute = DeclType(*(("dyn", types.DYN) if lists else ("any", types.ANY)), 1, max_elements=_LONGEST_VALUE)
    attributes = map_decl(name, attribute, _MOST_ATTRIBUTES, by_name=True)
    allocations = {"allowMultipleAllocations": DeclType("bool", types.BOOL, 4, max_elements=1)} if shared else {}
    device = object_decl(
        "kubernetes.DRADevice",
        {
            "driver": driver,
            **allocations,
            "attributes": map_decl(domain, attributes, _MOST_ATTRIBUTES),
            "capacity": map_decl(domain, map_decl(name, QUANTITY, _MOST_ATTRIBUTES), _MOST_ATTRIBUTES),
        },
    )
    return Environment({"device": device}, binds=True, includes=lists)
