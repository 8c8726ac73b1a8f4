"""`compile_rules`: the programs of one schema's x-kubernetes-validations, and what is wrong with them.

Upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go. The engine is imported when there are rules to compile.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.cel_times import COMPILED
from tetrapod.machinery.schema.fieldpath import PathError, resolve

if TYPE_CHECKING:
    from tetrapod.machinery.cel.declarations import DeclType
    from tetrapod.machinery.cel.environment import Environment, Program
    from tetrapod.machinery.cel.types import CelType

_NO_BOOL: Final = "cel expression must evaluate to a bool"
_NO_STRING: Final = "messageExpression must evaluate to a string"


@dataclass(slots=True)
class CompiledRule:
    """`program` None: the rule is empty, or `error` says why it does not compile. `declared` is the rule as it is written."""

    declared: Object
    program: Program | None = None
    error: str = ""
    uses_old: bool = False
    message: Program | None = None
    message_error: str = ""
    field_path: str = ""

    @property
    def optional_old(self) -> bool:
        return bool(self.declared.get("optionalOldSelf"))


def compile_rules(rules: list[Object], decl: DeclType, schema: Object) -> list[CompiledRule]:
    """Of a schema with its type; `schema` is what field paths lead into."""
    from tetrapod.machinery.cel import types
    from tetrapod.machinery.cel.environment import Environment

    scoped = decl.named("selfType")
    began = time.perf_counter()
    plain = Environment({"self": scoped, "oldSelf": scoped})
    optional: dict[str, CelType | DeclType] = {"self": scoped, "oldSelf": types.optional_of(scoped.cel)}
    compiled = [_compiled(rule, Environment(optional) if rule.get("optionalOldSelf") else plain, schema) for rule in rules]
    for tell in COMPILED:
        tell(time.perf_counter() - began)
    return compiled


def _compiled(rule: Object, environment: Environment, schema: Object) -> CompiledRule:
    from tetrapod.machinery.cel import types
    from tetrapod.machinery.cel.errors import CompileError

    found = CompiledRule(rule)
    text, expression = rule.get("rule") or "", rule.get("messageExpression") or ""
    if not text.strip():
        return found
    try:
        program = environment.compile(text)
    except CompileError as error:
        found.error = error.full if error.output_type in (None, types.BOOL) else _NO_BOOL
        return found
    if program.output_type != types.BOOL:
        found.error = _NO_BOOL
        return found
    found.program, found.uses_old = program, program.references("oldSelf")
    if expression:
        try:
            message = environment.compile(expression)
        except CompileError as error:
            failed = f"messageExpression {error.full.removeprefix('program ')}"
            found.message_error = failed if error.output_type in (None, types.STRING) else _NO_STRING
            return found
        if message.output_type != types.STRING:
            found.message_error = _NO_STRING
            return found
        found.message = message
    if rule.get("fieldPath"):
        try:
            found.field_path, _ = resolve(rule["fieldPath"], schema)
        except PathError:
            found.field_path = ""
    return found
