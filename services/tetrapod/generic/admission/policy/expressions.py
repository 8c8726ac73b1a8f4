"""`Compiled` expressions, and `Composer`, which compiles the expressions of one policy.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/compile.go, composition.go
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.admission.policy.environment import admission_environment, variable_type, with_variables
from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.declarations import DeclType
from tetrapod.machinery.cel.environment import Environment, Program
from tetrapod.machinery.cel.errors import CompileError
from tetrapod.machinery.cel.types import CelType

Returns = tuple[CelType, ...]
BOOL: Final[Returns] = (types.BOOL,)
STRING: Final[Returns] = (types.STRING,)
STRING_OR_NULL: Final[Returns] = (types.STRING, types.NULL)
ANYTHING: Final[Returns] = (types.ANY, types.DYN)
APPLY_CONFIGURATION: Final[Returns] = (types.object_type("Object"),)
JSON_PATCH: Final[Returns] = (types.list_of(types.object_type("JSONPatch")),)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A CEL expression with its program, or with the error for which it has no program.

    Attributes:
        expression: the text of the expression.
        program: the program; None if there is an error.
        error: the text of the compile error; "" if there is a program.
        is_internal: whether the expression has no type error, but its program cannot be built, because evaluating its
            constant part fails.
    """

    expression: str
    program: Program | None = None
    error: str = ""
    is_internal: bool = False


def compile_expression(environment: Environment, expression: str, returns: Returns) -> Compiled:
    """Compile an expression, which must evaluate to one of the types in `returns`.

    Errors are in the result, not raised.
    """
    try:
        program = environment.compile(expression)
    except CompileError as error:
        if error.output_type is None:
            return Compiled(expression, None, error.full)
        wrong = _wrong_type(error.output_type, returns)
        return Compiled(expression, None, wrong or error.full, is_internal=not wrong)
    if wrong := _wrong_type(program.output_type, returns):
        return Compiled(expression, None, wrong)
    return Compiled(expression, program)


def _wrong_type(actual: CelType, returns: Returns) -> str:
    if types.ANY in returns or actual in returns:
        return ""
    expected = str(returns[0]) if len(returns) == 1 else f"one of [{' '.join(expected.name for expected in returns)}]"
    return f"must evaluate to {expected} but got {types.go_text(actual)}"


class Composer:
    """Compiles the composed variables of a policy (`variables.NAME`), and then its other expressions.

    Each composed variable may use those before it.

    Args:
        params: whether the policy has parameters.
        composed: whether the variable `variables` exists; webhooks do not have it.
        environment_of: returns the environment without `variables`, called with params, authorizer and patch_types (see
            `admission_environment`).
    """

    def __init__(
        self,
        *,
        params: bool,
        composed: bool = True,
        environment_of: Callable[[bool, bool, bool], Environment] = admission_environment,
    ) -> None:
        self.variables: dict[str, Compiled] = {}
        self._params, self._composed = params, composed
        self._environment_of = environment_of
        self._fields: dict[str, DeclType] = {}  # environments read it at each compilation
        self._environments: dict[tuple[bool, bool], Environment] = {}

    def variable(self, name: str, expression: str) -> Compiled:
        """Compile a composed variable, and make it available to later expressions as `variables.NAME`.

        That also happens if the expression has an error, which is in the result and not raised.

        Args:
            name: the name of the variable.
            expression: its CEL expression, which may have any type.
        """
        compiled = self.compile(expression, ANYTHING)
        self._fields[name] = variable_type(compiled.program.output_type if compiled.program is not None else None)
        self.variables[name] = compiled
        return compiled

    def compile(
        self, expression: str, returns: Returns, *, authorizer: bool = True, patch_types: bool = False
    ) -> Compiled:
        """Compile an expression that uses the variables compiled so far. Errors are in the result, not raised.

        Args:
            returns: the types that it may evaluate to.
            authorizer: whether it may use the variable `authorizer`; message expressions may not.
            patch_types: whether it may construct `Object` and `JSONPatch`, as mutations do.
        """
        return compile_expression(self._environment(authorizer, patch_types), expression, returns)

    def _environment(self, authorizer: bool, patch_types: bool) -> Environment:
        key = (authorizer, patch_types)
        environment = self._environments.get(key)
        if environment is None:
            environment = self._environment_of(self._params, authorizer, patch_types)
            if self._composed:
                environment = with_variables(environment, self._fields)
            self._environments[key] = environment
        return environment
