"""`Environment` and `Program`: the door of this package.

    environment = Environment({"self": decl, "oldSelf": decl})
    program = environment.compile("self.replicas <= 5")      # CompileError
    program.output_type == types.BOOL
    value = program.evaluate({"self": {...}}, meter)         # EvaluationError, CostLimitExceeded

Everything that Kubernetes 1.37 enables is there (k8s.io/apiserver/pkg/cel/environment/base.go). Expressions are parsed, checked,
estimated and evaluated by rules ported from cel-go (see ARCHITECTURE.md). Import it where an expression is met, never at start-up.
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
from tetrapod.machinery.cel.lexer import LexicalError
from tetrapod.machinery.cel.limits import MATCH_CONDITIONS_BUDGET, MAX_REQUEST_SIZE, PER_CALL_LIMIT, RUNTIME_BUDGET
from tetrapod.machinery.cel.literals import literal_problems
from tetrapod.machinery.cel.nodes import Node, selects
from tetrapod.machinery.cel.parser import MAX_DEPTH, MAX_SIZE, Parser, SyntaxProblem, TooDeep
from tetrapod.machinery.cel.plan import Plan
from tetrapod.machinery.cel.planned import InstantiationError
from tetrapod.machinery.cel.source import Source
from tetrapod.machinery.cel.types import CelType

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
    """Counts what evaluations cost; the count holds after errors too."""

    cost: int = 0


class Environment:
    """What an expression may name.

    `variables`: a `CelType`, or a `DeclType` whose object types (and theirs) become known; a name may have dots in it
    (`authorizer.requestResource`). `declared` are more types that are known by name. `patch_types` allows `Object{…}`, `Object.spec{…}`,
    `JSONPatch{…}` and `jsonpatch.escapeKey`; `binds` allows `cel.bind`. An environment is never changed.
    """

    def __init__(
        self,
        variables: Mapping[str, CelType | DeclType],
        *,
        declared: tuple[DeclType, ...] = (),
        patch_types: bool = False,
        binds: bool = False,
    ) -> None:
        self.variables = dict(variables)
        self.declared = declared
        self.patch_types = patch_types
        self.binds = binds

    def extend(self, variables: Mapping[str, CelType | DeclType], declared: tuple[DeclType, ...] = ()) -> Environment:
        """This environment and more variables (a later one of the same name wins) and types."""
        return Environment(
            {**self.variables, **variables}, declared=self.declared + declared, patch_types=self.patch_types, binds=self.binds
        )

    def compile(self, expression: str) -> Program:
        """Parses and checks. Raises CompileError, whose text callers put behind `compilation failed: `."""
        source = Source(expression)
        try:
            node = _parsed(expression, source, self.binds)
            checker = Checker(self._scope)
            checker.check(node)
            problems = checker.problems or literal_problems(node)
        except RecursionError:
            raise _too_deep(source) from None
        if problems:
            raise source.error([source.issue(at, message) for at, message in problems])
        return Program(expression, node, self)

    @cached_property
    def _scope(self) -> Scope:
        variables = {name: kind.cel if isinstance(kind, DeclType) else kind for name, kind in self.variables.items()}
        decls = [kind for kind in (*self.variables.values(), *self.declared) if isinstance(kind, DeclType)]
        objects = {found.name: {name: decl.cel for name, decl in (found.fields or {}).items()} for d in decls for found in d.objects()}
        return Scope(variables, objects, patch_types=self.patch_types)


class Program:
    """A checked expression."""

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
        """Whether the expression uses a variable (`oldSelf`) anywhere."""
        return variable in self._plan.variables

    def selects(self, field: str, of: str = "") -> bool:
        """Whether a field of this name is selected anywhere (`x.field`, `x.?field`, `has(x.field)`); `of`: of this variable only."""
        return selects(self._node, field, of)

    def cost_estimate(self) -> CostEstimate:
        """What an evaluation can cost, with the sizes that the variables' declared types allow."""
        return estimate(self._node, self._environment.variables)

    def evaluate(self, bindings: Mapping[str, Any], meter: Meter | None = None, limit: int = PER_CALL_LIMIT) -> Any:
        """The value, as `values` describes: None, bool, int, float, str, bytes, list, dict or one of its classes.

        `bindings` holds JSON as it was decoded, or values of `values`; nothing is changed or converted beforehand. What a variable's
        value costs to make may be put off: `values.Lazy(function)`; `values.LazyFields({name: function})` is an object whose fields are
        made at first use (`variables.x`). Raises EvaluationError, CostLimitExceeded, or what a binding's Interrupt is.
        """
        slots = self._plan.frame_slots()
        for name, slot in self._plan.variables.items():
            if name in bindings:
                slots[slot] = bindings[name]
        frame = Frame(slots, limit)
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


def _parsed(expression: str, source: Source, binds: bool) -> Node:
    if len(expression) > MAX_SIZE:
        text = f"expression code point size exceeds limit: size: {len(expression)}, limit {MAX_SIZE}"
        raise source.error([source.issue(-1, text)])
    parser = None
    try:
        parser = Parser(expression, binds=binds)
        node = parser.parse()
    except TooDeep:
        raise _too_deep(source) from None
    except (LexicalError, SyntaxProblem):
        from tetrapod.machinery.cel.syntax import syntax_issues

        before = [] if parser is None else parser.problems
        raise source.error(syntax_issues(expression, source) + [source.issue(*problem) for problem in before]) from None
    if parser.problems:
        raise source.error([source.issue(at, message) for at, message in parser.problems])
    return node


def _too_deep(source: Source) -> CompileError:
    return source.error([source.issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")])
