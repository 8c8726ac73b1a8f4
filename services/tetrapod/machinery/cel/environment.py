"""`Environment` and `Program`: the entry points of this package.

    environment = Environment({"self": decl, "oldSelf": decl})
    program = environment.compile("self.replicas <= 5")      # CompileError
    program.output_type == types.BOOL
    value = program.evaluate({"self": {...}}, meter)         # EvaluationError, CostLimitExceeded

The language and the libraries are those that Kubernetes 1.37 enables (k8s.io/apiserver/pkg/cel/environment/base.go).
Expressions are parsed, checked, estimated and evaluated by rules ported from cel-go. Import this module where an
expression is first needed, never at start-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tetrapod.machinery.cel.checker import Checker, Scope
from tetrapod.machinery.cel.declarations import DeclType
from tetrapod.machinery.cel.errors import CompileError, CostLimitExceeded, EvaluationError
from tetrapod.machinery.cel.estimate import CostEstimate, estimate
from tetrapod.machinery.cel.frame import Frame
from tetrapod.machinery.cel.limits import MATCH_CONDITIONS_BUDGET, MAX_REQUEST_SIZE, PER_CALL_LIMIT, RUNTIME_BUDGET
from tetrapod.machinery.cel.literals import literal_problems
from tetrapod.machinery.cel.nodes import Node, selects
from tetrapod.machinery.cel.overloads import PATCH_FUNCTIONS
from tetrapod.machinery.cel.parsing import parsed, too_deep
from tetrapod.machinery.cel.plan import Plan
from tetrapod.machinery.cel.plan_results import InstantiationError
from tetrapod.machinery.cel.source import Source
from tetrapod.machinery.cel.types import CelType
from tetrapod.machinery.long_work import deadline

__all__ = [
    "MATCH_CONDITIONS_BUDGET",
    "MAX_REQUEST_SIZE",
    "PER_CALL_LIMIT",
    "RUNTIME_BUDGET",
    "CostEstimate",
    "Environment",
    "Meter",
    "Program",
]


@dataclass(slots=True)
class Meter:
    """The sum of the costs of several evaluations. Pass it to an evaluation, which adds its cost even if it fails."""

    cost: int = 0


class Environment:
    """The variables and types that an expression can use; immutable.

    Args:
        variables: the type of each variable. The object types within a `DeclType` become known by name. A variable's
            name may contain dots (`authorizer.requestResource`).
        declared: further types that expressions can name.
        patch_types: whether `Object{…}`, `Object.spec{…}`, `JSONPatch{…}` and `jsonpatch.escapeKey` are allowed.
        binds: whether `cel.bind` is allowed.
        includes: whether the function `includes` is allowed.
    """

    def __init__(
        self,
        variables: Mapping[str, CelType | DeclType],
        *,
        declared: tuple[DeclType, ...] = (),
        patch_types: bool = False,
        binds: bool = False,
        includes: bool = False,
    ) -> None:
        self.variables = dict(variables)
        self.declared = declared
        self.patch_types = patch_types
        self.binds = binds
        self.includes = includes

    def extend(self, variables: Mapping[str, CelType | DeclType], declared: tuple[DeclType, ...] = ()) -> Environment:
        """Return a copy of this environment with more variables and types.

        A new variable replaces an existing one of the same name.

        Args:
            variables: the type of each further variable.
            declared: further types that expressions can name.
        """
        return Environment(
            {**self.variables, **variables},
            declared=self.declared + declared,
            patch_types=self.patch_types,
            binds=self.binds,
            includes=self.includes,
        )

    def compile(self, expression: str) -> Program:
        """Parse and check an expression, and plan its evaluation.

        Raises:
            CompileError: the expression is invalid. Callers put its text after `compilation failed: `.
        """
        source = Source(expression)
        try:
            node = parsed(expression, source, binds=self.binds)
            checker = Checker(self._scope)
            checker.check(node)
            problems = checker.problems or literal_problems(node)
        except RecursionError:
            raise too_deep(source) from None
        if problems:
            raise source.error([source.issue(at, message) for at, message in problems])
        return Program(expression, node, self)

    @cached_property
    def _scope(self) -> Scope:
        variables = {name: kind.cel if isinstance(kind, DeclType) else kind for name, kind in self.variables.items()}
        decls = [kind for kind in (*self.variables.values(), *self.declared) if isinstance(kind, DeclType)]
        objects = {nested.name: nested.fields for d in decls for nested in d.objects() if nested.fields is not None}
        functions = (PATCH_FUNCTIONS if self.patch_types else frozenset()) | ({"includes"} if self.includes else set())
        return Scope(variables, objects, patch_types=self.patch_types, functions=functions)


class Program:
    """A checked expression that can be evaluated any number of times. `output_type` is the type of its value.

    Args:
        expression: the text of the expression.
        node: the checked tree.
        environment: the environment in which it was checked.

    Raises:
        CompileError: a constant part of the expression fails.
    """

    def __init__(self, expression: str, node: Node, environment: Environment) -> None:
        self.expression = expression
        self.output_type = node.type
        self._node = node
        self._environment = environment
        try:
            self._plan = Plan(node)
        except InstantiationError as error:
            raise CompileError((), str(error), node.type) from None

    def references(self, variable: str) -> bool:
        """Return whether the expression uses a variable (such as `oldSelf`) anywhere, even where it has no effect."""
        return variable in self._plan.variables

    def selects(self, field: str, variable: str = "") -> bool:
        """Return whether the expression selects a field anywhere (`x.field`, `x.?field`, `has(x.field)`).

        Args:
            field: the name of the field.
            variable: count only selections directly from this variable; "" means from anything.
        """
        return selects(self._node, field, variable)

    def cost_estimate(self) -> CostEstimate:
        """Return the lowest and highest cost of an evaluation, given the largest sizes that the types allow."""
        return estimate(self._node, self._environment.variables)

    def evaluate(
        self,
        bindings: Mapping[str, Any],
        meter: Meter | None = None,
        limit: int = PER_CALL_LIMIT,
    ) -> Any:
        """Evaluate the expression and return its value.

        The value is None, bool, int, float, str, bytes, list, dict or an instance of a class of `values`. Between its
        steps, an evaluation in `long_work.on_event_loop` checks the time.

        Args:
            bindings: the value of each variable: decoded JSON, or values of `values`. They are neither changed nor
                converted. A value that is expensive to compute can be a `values.Lazy(function)`;
                `values.LazyFields({name: function})` is an object whose fields are computed at first use (such as
                `variables.x`).
            meter: counts the cost, also when the evaluation fails.
            limit: the cost limit of this evaluation.

        Raises:
            EvaluationError: the result is an error.
            CostLimitExceeded: the evaluation cost more than `limit`.
            TakesTooLong: the evaluation would take too long for the event loop.
            Interrupt: a binding raised it.
        """
        slots = self._plan.frame_slots()
        for name, slot in self._plan.variables.items():
            if name in bindings:
                slots[slot] = bindings[name]
        frame = Frame(slots, limit, deadline())
        try:
            value = self._plan.run(frame)
        except RecursionError:
            raise EvaluationError("internal error: nested too deeply") from None
        finally:
            if meter is not None:
                meter.cost += frame.cost
        if frame.cost > limit:
            raise CostLimitExceeded
        return value
