"""Validation of custom resources against the CEL rules of their schema, at every level of the object.

Rules are compiled when a value of their schema is first validated, once for each version of a CustomResourceDefinition.

Upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from tetrapod.machinery.cel.escaping import escape
from tetrapod.machinery.field import FieldError, child, index, invalid, key
from tetrapod.machinery.golang.json_numbers import has_whole_floats
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.cel_failures import failure, message_of, problem_of
from tetrapod.machinery.schema.cel_rules import CompiledRule, compile_rules
from tetrapod.machinery.schema.cel_run import Run
from tetrapod.machinery.schema.correlation import Ratchet, by_keys, keys_of
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema_node import SchemaNode

_NO_RATCHET: Final = Ratchet()
_NOTHING: Final[Object] = {}
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_MAX_MESSAGE: Final = 5 * 1024


class _Stop(Exception):
    """The exception that ends the validation: no further rule is evaluated."""


class RuleValidator:
    """A validator of values against the CEL rules of one schema and of all schemas below it.

    Args:
        node: the schema that gives the values their CEL type.
        root: whether the values are whole resources, with apiVersion, kind and metadata.
        rules: the schema that has the rules, if it is not `node` but a branch of its allOf.
        typed: whether the values can have a CEL type. Those of `items` have none below a schema that is not an array,
            and those of `additionalProperties` none below one that is not an object.
    """

    def __init__(
        self, node: SchemaNode, *, root: bool = False, rules: SchemaNode | None = None, typed: bool = True
    ) -> None:
        self._node = node
        self._root = root
        self._rules = rules or node
        self._typed = typed

    def validate(self, path: str, obj: Any, old: Any, run: Run, ratchet: Ratchet = _NO_RATCHET) -> None:
        """Validate a value and add the failures to `run`.

        Args:
            path: the field path of the value.
            obj: the value.
            old: the existing value on update, or None.
            run: the state of the validation. Its budget is negative if the validation ended early.
            ratchet: which failures become warnings because the value did not change.

        Raises:
            TakesTooLong: the run is on the event loop, and the validation takes too long for it.
        """
        try:
            self._validate(path, obj, old, run, ratchet)
        except _Stop:
            run.budget = -1

    @cached_property
    def empty(self) -> bool:
        """Whether neither the schema nor a schema below it has rules, so that every value is valid."""
        return not (
            self._rules.validations.get("x-kubernetes-validations")
            or self._all_of
            or self._properties
            or self._items
            or self._values
        )

    @cached_property
    def _compiled(self) -> list[CompiledRule] | None:
        """The compiled rules of the schema itself ([] if it has none), or None if no CEL type can be built for it."""
        from tetrapod.machinery.cel.schema_types import declared

        rules = self._rules.validations.get("x-kubernetes-validations")
        if not rules:
            return []
        decl = declared(self._node, root=self._root) if self._typed else None
        return None if decl is None else compile_rules(rules, decl, _schema_of(self._node))

    @cached_property
    def _type(self) -> str:
        """The type that the values have in CEL, such as "array" or "object"; "" if they have none."""
        if not self._typed or self._node.int_or_string:
            return ""
        return "object" if self._root else self._node.type

    @cached_property
    def _properties(self) -> dict[str, RuleValidator]:
        known = self._node.properties
        # As upstream, rules of properties are ignored if the values are not objects in CEL.
        validators = {
            name: _child(known[name], rules)
            for name, rules in self._rules.properties.items()
            if name in known and (self._type == "object" or escape(name) is None)
        }
        return {name: validator for name, validator in validators.items() if not validator.empty}

    @cached_property
    def _items(self) -> RuleValidator | None:
        return self._single(self._node.items, self._rules.items, self._type == "array")

    @cached_property
    def _values(self) -> RuleValidator | None:
        node, rules = self._node.additional_properties, self._rules.additional_properties
        return self._single(node, rules, self._type == "object")

    @cached_property
    def _all_of(self) -> list[RuleValidator]:
        nested = [build(schema) for schema in self._rules.validations.get("allOf") or ()]
        validators = [RuleValidator(self._node, root=self._root, rules=rules, typed=self._typed) for rules in nested]
        return [validator for validator in validators if not validator.empty]

    def _single(self, node: SchemaNode | None, rules: SchemaNode | None, typed: bool) -> RuleValidator | None:
        if node is None or rules is None:
            return None
        validator = _child(node, rules, typed=typed)
        return None if validator.empty else validator

    def _validate(self, path: str, obj: Any, old: Any, run: Run, ratchet: Ratchet) -> None:
        if obj is None:
            return
        self._evaluate(path, obj, old, run, ratchet)
        for validator in self._all_of:
            validator._validate(path, obj, old, run, ratchet.beside())
        if isinstance(obj, list):
            self._validate_items(path, obj, old if isinstance(old, list) else [], run, ratchet)
        elif isinstance(obj, dict):
            self._validate_entries(path, obj, old if isinstance(old, dict) else _NOTHING, run, ratchet)

    def _validate_entries(self, path: str, obj: Object, old: Object, run: Run, ratchet: Ratchet) -> None:
        if self._values is None and not self._properties:
            return
        # Upstream validates updates with objects that were decoded from storage, whose keys are sorted.
        for name, value in obj.items() if old is _NOTHING else sorted(obj.items()):
            validator, at = self._properties.get(name), child(path, name)
            if validator is None and self._values is not None and name not in self._node.properties:
                validator, at = self._values, key(path, name)
            if validator is None:
                continue
            validator._validate(at, value, old.get(name), run, ratchet.key(name))

    def _validate_items(self, path: str, obj: list[Any], old: list[Any], run: Run, ratchet: Ratchet) -> None:
        if self._items is None:
            return
        old_items = by_keys(self._node, old)
        for i, value in enumerate(obj):
            keys = keys_of(self._node, value)
            old_value = old_items.get(keys) if keys is not None else None
            self._items._validate(index(path, i), value, old_value, run, ratchet.index(i))

    def _evaluate(self, path: str, obj: Any, old: Any, run: Run, ratchet: Ratchet) -> None:
        if not self._rules.validations.get("x-kubernetes-validations"):
            return
        at, kind = path or "<nil>", self._node.type
        if "_compiled" not in self.__dict__:
            run.compiles(self._rules.validations["x-kubernetes-validations"])
        compiled = self._compiled
        if compiled is None:
            text = "rule compiler initialization error: failed to convert to declType for CEL validation rules"
            run.errors.append(invalid(at, kind, text))
            return
        if run.budget <= 0:
            run.errors.append(invalid(at, kind, _OUT_OF_BUDGET))
            raise _Stop
        with_old = any(rule.uses_old for rule in compiled)
        values = _Values(self._node, obj, old, root=self._root, with_old=with_old, unsuited=run.unsuited)
        for rule in compiled:
            if rule.error:
                run.errors.append(invalid(at, kind, f"rule compile error: {rule.error}"))
            elif rule.program is not None and not (rule.uses_old and old is None and not rule.optional_old):
                self._evaluate_rule(rule, path, obj, values, run, ratchet)

    def _evaluate_rule(
        self, rule: CompiledRule, path: str, obj: Any, values: _Values, run: Run, ratchet: Ratchet
    ) -> None:
        assert rule.program is not None
        at, kind = path or "<nil>", self._node.type
        value, error, cost = run.evaluate(rule.program, values.optional if rule.optional_old else values.plain)
        problem = "" if error is None else problem_of(error, rule.declared)
        if cost > run.budget:
            run.errors.append(invalid(at, kind, _OUT_OF_BUDGET))
            raise _Stop
        run.budget -= cost
        if problem:
            run.errors.append(invalid(at, kind, problem))
            if "actual cost limit exceeded" in problem:
                raise _Stop
            return
        if value is True:
            return
        field_path = child(path, rule.field_path) if rule.field_path else path

        def add(error: FieldError) -> None:
            if not rule.uses_old and ratchet.tolerates:
                run.warnings.append(str(error))
            else:
                run.errors.append(error)

        detail, fatal = self._message(rule, values, run)
        if fatal:
            add(invalid(field_path or "<nil>", kind, fatal))
            raise _Stop
        add(
            failure(
                rule.declared.get("reason"),
                field_path or "<nil>",
                obj,
                detail or message_of(rule.declared),
                shown=kind not in ("object", "array"),
            )
        )

    def _message(self, rule: CompiledRule, values: _Values, run: Run) -> tuple[str, str]:
        """Evaluate the messageExpression of a rule that failed, and subtract its cost from the budget.

        Args:
            rule: the compiled rule that failed.
            values: the values of its CEL variables.
            run: the validation, whose budget is reduced.

        Returns:
            The message and an error. The message is "" if the rule has no expression, if that failed, or if its result
            is not a usable text. The error is "" unless it ends the whole validation.
        """
        from tetrapod.machinery.cel.errors import CostLimitExceeded

        if rule.message is None:
            return "", ""
        text, error, cost = run.evaluate(rule.message, values.plain)
        if cost > run.budget:
            return (
                "",
                "messageExpression evaluation failed due to running out of cost budget, no further validation rules "
                "will be run",
            )
        if isinstance(error, CostLimitExceeded):
            expression = rule.declared["messageExpression"]
            return (
                "",
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: "
                f"{go_quote(expression)}",
            )
        run.budget -= cost
        text = text.strip() if isinstance(text, str) else ""
        return ("" if "\n" in text or len(text.encode()) > _MAX_MESSAGE else text), ""


class _Values:
    """The values of the CEL variables for the rules of one schema.

    Rules with optionalOldSelf get those of `optional`, all others those of `plain`.

    Args:
        node: the schema.
        obj: the new value.
        old: the existing value, or None.
        root: whether the value is a whole resource.
        with_old: whether any of the rules refers to `oldSelf`.
        unsuited: whether a part of the values may have another type than the schema declares.
    """

    def __init__(self, node: SchemaNode, obj: Any, old: Any, *, root: bool, with_old: bool, unsuited: bool) -> None:
        from tetrapod.machinery.cel.schema_values import attempt, bound
        from tetrapod.machinery.cel.values import NONE, Optional

        checked = unsuited or has_whole_floats(obj)
        self.plain: dict[str, Any] = {"self": attempt(lambda: bound(node, obj, root=root, checked=checked))}
        self.optional = self.plain
        if with_old:
            self.optional = {**self.plain, "oldSelf": NONE}
            if old is not None:
                old_value = attempt(lambda: bound(node, old, root=root, checked=unsuited))
                self.plain = {**self.plain, "oldSelf": old_value}
                self.optional = {**self.plain, "oldSelf": Optional(old_value)}


def _child(node: SchemaNode, rules: SchemaNode, *, typed: bool = True) -> RuleValidator:
    return RuleValidator(node, root=node.embedded_resource, rules=rules, typed=typed)


def _schema_of(node: SchemaNode) -> Object:
    """Return the part of a schema that resolving a fieldPath needs: types, properties and additionalProperties."""
    schema: Object = {"type": node.type}
    if node.properties:
        schema["properties"] = {name: _schema_of(prop) for name, prop in node.properties.items()}
    elif node.additional_properties is not None:
        schema["additionalProperties"] = _schema_of(node.additional_properties)
    return schema
