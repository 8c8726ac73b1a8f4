"""The expressions of policies and webhooks, compiled to see whether they can be.

CEL is loaded when the first expression is met. Upstream: validateCELCondition and its callers in
pkg/apis/admissionregistration/validation/validation.go.
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
    """Of one policy. Variables are there for what is checked after them, if the policy is `composed`."""

    def __init__(self, *, params: bool, composed: bool) -> None:
        self._params, self._composed = params, composed

    @cached_property
    def _composer(self) -> Composer:
        from tetrapod.generic.admission.policy.expressions import Composer

        return Composer(params=self._params, composed=self._composed)

    def variable(self, name: str, expression: str, path: str) -> list[FieldError]:
        return _error(self._composer.variable(name, expression), expression, path)

    def condition(self, expression: str, path: str) -> list[FieldError]:
        from tetrapod.generic.admission.policy.expressions import BOOL

        return self._check(expression, expression, path, BOOL)

    def message(self, expression: str, path: str) -> list[FieldError]:
        from tetrapod.generic.admission.policy.expressions import STRING

        return _error(self._composer.compile(expression, STRING, authorizer=False), expression, path)

    def annotation(self, expression: str, path: str) -> list[FieldError]:
        from tetrapod.generic.admission.policy.expressions import STRING_OR_NULL

        return self._check(expression.strip(), expression, path, STRING_OR_NULL)

    def json_patch(self, expression: str, path: str) -> list[FieldError]:
        from tetrapod.generic.admission.policy.expressions import JSON_PATCH

        return self._check(expression, expression, path, JSON_PATCH, patch_types=True)

    def apply_configuration(self, expression: str, path: str) -> list[FieldError]:
        from tetrapod.generic.admission.policy.expressions import APPLY_CONFIGURATION

        return self._check(expression, expression, path, APPLY_CONFIGURATION, patch_types=True)

    def _check(self, compiled: str, shown: str, path: str, returns: Returns, *, patch_types: bool = False) -> list[FieldError]:
        return _error(self._composer.compile(compiled, returns, patch_types=patch_types), shown, path)


def _error(made: Compiled, shown: str, path: str) -> list[FieldError]:
    if made.is_internal:
        return [field.internal_error(path, made.error)]
    return [field.invalid(path, shown, made.error)] if made.error else []


def match_condition(condition: Object, path: str, *, params: bool) -> list[FieldError]:
    """A condition sees no variables, whoever has it."""
    return Expressions(params=params, composed=False).condition(condition["expression"].strip(), path)
