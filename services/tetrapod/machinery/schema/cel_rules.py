"""Compilation of the CEL rules (`x-kubernetes-validations`) of one schema.

It is used when a CustomResourceDefinition is validated and when custom resources are validated against it. The CEL
engine is imported only when there are rules to compile.

Upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.fieldpath import PathError, resolve

if TYPE_CHECKING:
    from tetrapod.machinery.cel.declarations import DeclType
    from tetrapod.machinery.cel.environment import Environment, Program
    from tetrapod.machinery.cel.types import CelType

_NO_BOOL: Final = "cel expression must evaluate to a bool"
_NO_STRING: Final = "messageExpression must evaluate to a string"


COMPILED: Final[list[Callable[[float], None]]] = []
"""Callbacks that are called with the seconds that compiling the rules of one schema took.

This package has no metrics; their owner appends a callback.
"""


@dataclass(slots=True)
class CompiledRule:
    """One CEL rule and the result of compiling it.

    Attributes:
        declared: the rule as it is written in the schema.
        program: the compiled rule, or None if the rule is empty or did not compile.
        error: the error text of a rule that did not compile, or "".
        uses_old: whether the rule refers to `oldSelf`.
        message: the compiled messageExpression, or None if the rule has none or it did not compile.
        message_error: the error text of a messageExpression that did not compile, or "".
        field_path: the resolved fieldPath of the rule, or "".
    """

    declared: Object
    program: Program | None = None
    error: str = ""
    uses_old: bool = False
    message: Program | None = None
    message_error: str = ""
    field_path: str = ""

    @property
    def optional_old(self) -> bool:
        """Whether `oldSelf` is optional (optionalOldSelf), so that the rule is also evaluated on create."""
        return bool(self.declared.get("optionalOldSelf"))


def compile_rules(rules: list[Object], decl: DeclType, schema: Object) -> list[CompiledRule]:
    """Compile the rules of one schema.

    Args:
        rules: the entries of x-kubernetes-validations.
        decl: the CEL type of the schema, which `self` and `oldSelf` have.
        schema: the schema that the rules' fieldPath is resolved against.

    Returns:
        One result for each rule, in the same order. Rules that do not compile have an `error`.
    """
    from tetrapod.machinery.cel import types
    from tetrapod.machinery.cel.environment import Environment

    scoped = decl.named("selfType")
    began = time.perf_counter()
    plain = Environment({"self": scoped, "oldSelf": scoped})
    optional: dict[str, CelType | DeclType] = {"self": scoped, "oldSelf": types.optional_of(scoped.cel)}
    compiled = [
        _compiled(rule, Environment(optional) if rule.get("optionalOldSelf") else plain, schema) for rule in rules
    ]
    for observe in COMPILED:
        observe(time.perf_counter() - began)
    return compiled


def _compiled(rule: Object, environment: Environment, schema: Object) -> CompiledRule:
    from tetrapod.machinery.cel import types
    from tetrapod.machinery.cel.errors import CompileError

    result = CompiledRule(rule)
    text, expression = rule.get("rule") or "", rule.get("messageExpression") or ""
    if not text.strip():
        return result
    try:
        program = environment.compile(text)
    except CompileError as error:
        result.error = error.full if error.output_type in (None, types.BOOL) else _NO_BOOL
        return result
    if program.output_type != types.BOOL:
        result.error = _NO_BOOL
        return result
    result.program, result.uses_old = program, program.references("oldSelf")
    if expression:
        try:
            message = environment.compile(expression)
        except CompileError as error:
            message_text = f"messageExpression {error.full.removeprefix('program ')}"
            result.message_error = message_text if error.output_type in (None, types.STRING) else _NO_STRING
            return result
        if message.output_type != types.STRING:
            result.message_error = _NO_STRING
            return result
        result.message = message
    if rule.get("fieldPath"):
        try:
            result.field_path, _ = resolve(rule["fieldPath"], schema)
        except PathError:
            result.field_path = ""
    return result
