"""Validation of the defaults in a CRD's schema: they must match their schema and its CEL rules, and not need pruning.

Upstream: apiextensions-apiserver/pkg/apiserver/schema/defaulting (validation.go, surroundingobject.go).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tetrapod.machinery.field import FieldError, child, invalid, key
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import objectmeta, pruning, validation
from tetrapod.machinery.schema.cel_run import BUDGET, Run
from tetrapod.machinery.schema.cel_validation import RuleValidator
from tetrapod.machinery.schema.defaulting import copy
from tetrapod.machinery.schema.objectmeta import CoerceError
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema.value_checks import sorted_keys
from tetrapod.machinery.schema_node import SchemaNode

_META: Final = frozenset({"metadata", "apiVersion", "kind"})
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a schema within the nearest resource that encloses it.

    Attributes:
        root: the schema of the resource.
        steps: the property names that lead from `root` to the schema; None is a step into the items of a list.
        inside_meta: whether the schema lies within apiVersion, kind or metadata.
        at_root: whether the schema is that of the resource itself.
    """

    root: Object
    steps: tuple[str | None, ...] = ()
    inside_meta: bool = False
    at_root: bool = False


def validate_defaults(schema: Object, path: str, *, pruned: bool = True) -> list[FieldError]:
    """Return the errors of all defaults in a structural openAPIV3Schema.

    The metadata of resources within defaults is decoded in place, so that fields that ObjectMeta does not have are not
    stored.

    Args:
        schema: the schema.
        path: its field path.
        pruned: whether defaults with unknown fields are rejected.
    """
    root = {**schema, _EMBEDDED: True}
    return _validate(root, path, _Place(root), _Checks(pruned))


class _Checks:
    """The state that the checks of all defaults share.

    `pruned` is whether unknown fields are rejected, and `budget` the remaining CEL cost.
    """

    def __init__(self, pruned: bool) -> None:
        self.pruned = pruned
        self.budget = BUDGET

    def rule_errors(self, node: SchemaNode, value: Any, at: str, *, root: bool) -> list[FieldError]:
        """Return the errors of a default under the CEL rules of its schema.

        It must be valid both as an unchanged value and as a new one. The cost is subtracted from the budget.

        Args:
            node: the compiled schema.
            value: the default.
            at: the field path of the default.
            root: whether the schema is that of a resource, so that its rules see `metadata`, `apiVersion` and `kind`.
        """
        rules = RuleValidator(node, root=root)
        if rules.empty:
            return []
        update_run, create_run = Run(self.budget), Run(self.budget)
        rules.validate(at, value, value, update_run)
        if not update_run.errors:
            rules.validate(at, value, None, create_run)
        self.budget = min(update_run.budget, create_run.budget)
        return update_run.errors + create_run.errors


def _validate(s: Object, path: str, place: _Place, checks: _Checks) -> list[FieldError]:
    if s.get(_EMBEDDED):
        place = _Place(s, at_root=True)
    errors: list[FieldError] = []
    if checks.budget < 0:
        return errors
    if s.get("default") is not None:
        at = child(path, "default")
        errors += (
            _in_metadata(s, at, place, checks) if place.inside_meta else _default_errors(s, at, checks, place.at_root)
        )
    if isinstance(s.get("items"), dict):
        errors += _validate(
            s["items"], child(path, "items"), replace(place, steps=(*place.steps, None), at_root=False), checks
        )
    for name, prop in (s.get("properties") or {}).items():
        inside = place.inside_meta or bool(s.get(_EMBEDDED) and name in _META)
        below = _Place(place.root, (*place.steps, name), inside)
        errors += _validate(prop, key(child(path, "properties"), name), below, checks)
    return errors


def _default_errors(s: Object, at: str, checks: _Checks, root: bool) -> list[FieldError]:
    node, value = build(s), s["default"]
    errors: list[FieldError] = []
    if checks.pruned and pruning.prune(node, copy(value), root=bool(s.get(_EMBEDDED))):
        errors.append(invalid(at, sorted_keys(s["default"]), "must not have unknown fields"))
    try:
        objectmeta.coerce_embedded(node, value)
    except CoerceError as error:
        field_error = error.error
        return [
            *errors,
            FieldError(field_error.type, child(at, field_error.field), field_error.detail, field_error.value),
        ]
    if found_errors := objectmeta.validate_embedded(node, value, at):
        return errors + found_errors
    return errors + (_value_errors(s, at) or checks.rule_errors(node, s["default"], at, root=root))


def _in_metadata(s: Object, at: str, place: _Place, checks: _Checks) -> list[FieldError]:
    """Return the errors of a default inside apiVersion, kind or metadata.

    It is validated as part of a resource whose other fields are empty.

    Args:
        s: the schema that has the default.
        at: the field path of the default.
        place: the position of the schema within its resource.
        checks: the state that the checks of all defaults share.
    """
    resource = _surround(copy(s["default"]), place.steps)
    resource = {"apiVersion": "validation/v1", "kind": "Validation", **resource}
    root = build({**place.root, _EMBEDDED: True})
    try:
        objectmeta.coerce_embedded(root, resource)
    except CoerceError as error:
        return [invalid(at, s["default"], f"must result in valid metadata: {error.error}")]
    if errors := objectmeta.validate_embedded(root, resource):
        texts = ", ".join(str(e) for e in errors)
        return [
            invalid(at, s["default"], f"must result in valid metadata: {texts if len(errors) == 1 else f'[{texts}]'}")
        ]
    node = build(s)
    return _value_errors(s, at) or checks.rule_errors(node, s["default"], at, root=False)


def _value_errors(s: Object, at: str) -> list[FieldError]:
    """Return the errors of a default against the schema that declares it, without those of CEL rules.

    An error that names no field gets the field path of the default. For a schema with x-kubernetes-int-or-string, only
    its anyOf is checked.

    Args:
        s: the schema that has the default.
        at: the field path of the default.

    Upstream: Structural.ToKubeOpenAPI.
    """
    errors = validation.validate(build(_without_int_or_string(s)), s["default"], at)
    return [replace(e, field=at) if e.field == "<nil>" else e for e in errors]


def _without_int_or_string(s: Object) -> Object:
    """Return a copy of the schema without x-kubernetes-int-or-string, in it and in structural schemas below it."""
    copied = {name: value for name, value in s.items() if name != "x-kubernetes-int-or-string"}
    for name in ("items", "additionalProperties"):
        if isinstance(s.get(name), dict):
            copied[name] = _without_int_or_string(s[name])
    if s.get("properties"):
        copied["properties"] = {name: _without_int_or_string(prop) for name, prop in s["properties"].items()}
    return copied


def _surround(value: Any, steps: tuple[str | None, ...]) -> Object:
    """Return the object that contains `value` at the end of `steps` and nothing else.

    Args:
        value: the innermost value, a default.
        steps: property names, the outermost first; None is a list of one item. The first must be a name.
    """
    for step in reversed(steps):
        value = [value] if step is None else {step: value}
    surrounding: Object = value
    return surrounding
