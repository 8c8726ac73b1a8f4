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

    Each method compiles an expression and returns the errors about it: [] if it is valid. `path` is the field of the
    expression, for the errors.

    Args:
        params: whether expressions may use the variable `params`.
        composed: whether expressions may use the variables that were compiled before, as `variables.NAME`.
    """

    def __init__(self, *, params: bool, composed: bool) -> None:
        self._params, self._composed = params, composed

    @cached_property
    def _composer(self) -> Composer:
        from tetrapod.generic.admission.policy.expressions import Composer

        return Composer(params=self._params, composed=self._composed)

    def variable(self, name: str, expression: str, path: str) -> list[FieldError]:
        """Compile a variable of the policy and return the errors; later expressions can use it under this name.

        Args:
            path: the field path of the expression, for the errors.
        """
        return _error(self._composer.variable(name, expression), expression, path)

    def condition(self, expression: str, path: str) -> list[FieldError]:
        """Compile an expression that must return a bool, and return the errors.

        Args:
            path: the field path of the expression, for the errors.
        """
        from tetrapod.generic.admission.policy.expressions import BOOL

        return self._check(expression, expression, path, BOOL)

    def message(self, expression: str, path: str) -> list[FieldError]:
        """Compile a messageExpression, which must return a string and cannot use the authorizer; return the errors.

        Args:
            path: the field path of the expression, for the errors.
        """
        from tetrapod.generic.admission.policy.expressions import STRING

        return _error(self._composer.compile(expression, STRING, authorizer=False), expression, path)

    def annotation(self, expression: str, path: str) -> list[FieldError]:
        """Compile the valueExpression of an audit annotation, which must return a string or null; return the errors.

        Args:
            path: the field path of the expression, for the errors.
        """
        from tetrapod.generic.admission.policy.expressions import STRING_OR_NULL

        return self._check(expression.strip(), expression, path, STRING_OR_NULL)

    def json_patch(self, expression: str, path: str) -> list[FieldError]:
        """Compile the expression of a JSONPatch mutation, which must return a list of operations; return the errors.

        Args:
            path: the field path of the expression, for the errors.
        """
        from tetrapod.generic.admission.policy.expressions import JSON_PATCH

        return self._check(expression, expression, path, JSON_PATCH, patch_types=True)

    def apply_configuration(self, expression: str, path: str) -> list[FieldError]:
        """Compile the expression of an ApplyConfiguration mutation, which must return an `Object`; return errors.

        Args:
            path: the field path of the expression, for the errors.
        """
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
    """Return the errors about the expression of one match condition, which cannot use its policy's variables.

    Args:
        condition: an element of matchConditions, with an expression.
        path: the field of the expression, for the errors.
        params: whether the expression may use the variable `params`.
    """
    return Expressions(params=params, composed=False).condition(condition["expression"].strip(), path)
