"""`Environment` and `Program`: the door of this package.

    environment = Environment({"self": decl, "oldSelf": decl})
    program = environment.compile("self.replicas <= 5")      # CompileError
    program.output_type == types.BOOL
    value = program.evaluate({"self": {...}}, meter)         # EvaluationError, CostLimitExceeded

Everything that Kubernetes 1.37 enables is there (k8s.io/apiserver/pkg/cel/environment/base.go). Expressions are parsed, checked,
estimated and evaluated by rules ported from cel-go (see ARCHITECTURE.md); an import of this module costs nothing but the modules:
import it where an expression is met, never at start-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.machinery.cel.declarations import DeclType
from tetrapod.machinery.cel.types import CelType

PER_CALL_LIMIT: Final = 1_000_000  # of one evaluation (apiserver/pkg/apis/cel/config.go)
RUNTIME_BUDGET: Final = 10_000_000  # of all evaluations of one object or one policy
MATCH_CONDITIONS_BUDGET: Final = RUNTIME_BUDGET // 4
MAX_REQUEST_SIZE: Final = 3 * 1024 * 1024


@dataclass(slots=True)
class Meter:
    """Counts what evaluations cost; the count holds after errors too."""

    cost: int = 0


@dataclass(frozen=True, slots=True)
class CostEstimate:
    min: int
    max: int


class Environment:
    """What an expression may name.

    `variables`: a `CelType`, or a `DeclType` whose object types (and theirs) become known; a name may have dots in it
    (`authorizer.requestResource`). `declared` are more types that are known by name. `patch_types` allows `Object{…}`, `Object.spec{…}`,
    `JSONPatch{…}` and `jsonpatch.escapeKey`. An environment is never changed.
    """

    def __init__(
        self,
        variables: Mapping[str, CelType | DeclType],
        *,
        declared: tuple[DeclType, ...] = (),
        patch_types: bool = False,
    ) -> None:
        self.variables = dict(variables)
        self.declared = declared
        self.patch_types = patch_types

    def extend(self, variables: Mapping[str, CelType | DeclType], declared: tuple[DeclType, ...] = ()) -> Environment:
        """This environment and more variables (a later one of the same name wins) and types."""
        return Environment({**self.variables, **variables}, declared=self.declared + declared, patch_types=self.patch_types)

    def compile(self, expression: str) -> Program:
        """Parses and checks. Raises CompileError, whose text callers put behind `compilation failed: `."""
        raise NotImplementedError


class Program:
    """A checked expression. What evaluation needs is made at the first one."""

    expression: str
    output_type: CelType

    def references(self, variable: str) -> bool:
        """Whether the expression uses a variable (`oldSelf`) anywhere."""
        raise NotImplementedError

    def cost_estimate(self) -> CostEstimate:
        """What an evaluation can cost, with the sizes that the variables' declared types allow."""
        raise NotImplementedError

    def evaluate(self, bindings: Mapping[str, Any], meter: Meter | None = None, limit: int = PER_CALL_LIMIT) -> Any:
        """The value, as `values` describes: None, bool, int, float, str, bytes, list, dict or one of its classes.

        `bindings` holds JSON as it was decoded, or values of `values`; nothing is changed or converted beforehand. What a variable's
        value costs to make may be put off: `values.Lazy(function)`; `values.LazyFields({name: function})` is an object whose fields are
        made at first use (`variables.x`). Raises EvaluationError, CostLimitExceeded, or what a binding's Interrupt is.
        """
        raise NotImplementedError
