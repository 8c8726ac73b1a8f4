"""Validation of the CEL expressions of policies and webhooks, by compiling them.

The CEL packages are imported only when the first expression is compiled.

Upstream: pkg/apis/admissionregistration/validation/validation.go, validateCELCondition and its callers.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

if TYPE_CHECKING:
    from tetrapod.generic.admission.policy.expressions import Compiled, Composer, Returns


class Expressions:
    """The compiler of one policy's expressions.

    If the policy is `composed`, each variable can be used by the expressions that are checked after it.
    """

    def __init__(self, *, params: bool, composed: bool) -> None:
        self._params, self._composed = params, composed

    @cached_property
    def _composer(self) -> Composer:
        from tetrapod.generic.admission.policy.expressions import Composer

        return Composer(params=self._params, composed=self._composed)

    def variable(self, name: str, expression: str, path: str) -> list[FieldError]:
        """Compile a variable and make it available to later expressions."""
        return _error(self._composer.variable(name, expression), expression, path)

    def condition(self, expression: str, path: str) -> list[FieldError]:
        """Compile an expression that must return a bool."""
        from tetrapod.generic.admission.policy.expressions import BOOL

        return self._check(expression, expression, path, BOOL)

    def message(self, expression: str, path: str) -> list[FieldError]:
        """Compile a message expression, which must return a string and cannot use the authorizer."""
        from tetrapod.generic.admission.policy.expressions import STRING

        return _error(self._composer.compile(expression, STRING, authorizer=False), expression, path)

    def annotation(self, expression: str, path: str) -> list[FieldError]:
        """Compile an audit annotation, which must return a string or null."""
        from tetrapod.generic.admission.policy.expressions import STRING_OR_NULL

        return self._check(expression.strip(), expression, path, STRING_OR_NULL)

    def json_patch(self, expression: str, path: str) -> list[FieldError]:
        """Compile a mutation that must return a JSON patch."""
        from tetrapod.generic.admission.policy.expressions import JSON_PATCH

        return self._check(expression, expression, path, JSON_PATCH, patch_types=True)

    def apply_configuration(self, expression: str, path: str) -> list[FieldError]:
        """Compile a mutation that must return an apply configuration."""
        from tetrapod.generic.admission.policy.expressions import APPLY_CONFIGURATION

        return self._check(expression, expression, path, APPLY_CONFIGURATION, patch_types=True)

    def _check(
        self, compiled: str, shown: str, path: str, returns: Returns, *, patch_types: bool = False
    ) -> list[FieldError]:
        return _error(self._composer.compile(compiled, returns, patch_types=patch_types), shown, path)


def _error(made: Compiled, shown: str, path: str) -> list[FieldError]:
    if made.is_internal:
        return [field.internal_error(path, made.error)]
    return [field.invalid(path, shown, made.error)] if made.error else []


def match_condition(condition: Object, path: str, *, params: bool) -> list[FieldError]:
    """Validate a match condition, which cannot use the variables of its policy."""
    return Expressions(params=params, composed=False).condition(condition["expression"].strip(), path)
