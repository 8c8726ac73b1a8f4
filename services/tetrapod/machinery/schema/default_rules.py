"""Defaults in a schema must themselves be valid, by CEL rules too, and complete enough to need no pruning.

Upstream: apiextensions-apiserver/pkg/apiserver/schema/defaulting (validation.go, surroundingobject.go).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tetrapod.machinery.field import FieldError, child, invalid, key
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import objectmeta, pruning, validation
from tetrapod.machinery.schema.cel_validation import BUDGET, RuleValidator, Run
from tetrapod.machinery.schema.defaulting import copy
from tetrapod.machinery.schema.objectmeta import CoerceError
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema.value_checks import sorted_keys
from tetrapod.machinery.shapes.node import SchemaNode

_META: Final = frozenset({"metadata", "apiVersion", "kind"})
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in which resource a schema stands: `steps` lead from `root` (a resource's schema) to it, None into a list."""

    root: Object
    steps: tuple[str | None, ...] = ()
    inside_meta: bool = False
    at_root: bool = False


def validate_defaults(schema: Object, path: str, *, pruned: bool = True) -> list[FieldError]:
    """Of a whole openAPIV3Schema that is structural. `pruned`: unknown fields are refused.

    The metadata of resources in defaults is decoded in place, so that the schema is stored without what ObjectMeta lacks.
    """
    root = {**schema, _EMBEDDED: True}
    return _validate(root, path, _Place(root), _Checks(pruned))


class _Checks:
    """What all defaults of a schema have in common: whether unknown fields are refused, and what their rules may still cost."""

    def __init__(self, pruned: bool) -> None:
        self.pruned = pruned
        self.budget = BUDGET

    def rule_errors(self, node: SchemaNode, value: Any, at: str, *, root: bool) -> list[FieldError]:
        """A default must do as a value that stays, and as one that is new."""
        rules = RuleValidator(node, root=root)
        if rules.empty:
            return []
        kept, made = Run(self.budget), Run(self.budget)
        rules.validate(at, value, value, kept)
        if not kept.errors:
            rules.validate(at, value, None, made)
        self.budget = min(kept.budget, made.budget)
        return kept.errors + made.errors


def _validate(s: Object, path: str, place: _Place, checks: _Checks) -> list[FieldError]:
    if s.get(_EMBEDDED):
        place = _Place(s, at_root=True)
    errors: list[FieldError] = []
    if checks.budget < 0:
        return errors
    if s.get("default") is not None:
        at = child(path, "default")
        errors += _in_metadata(s, at, place, checks) if place.inside_meta else _default_errors(s, at, checks, place.at_root)
    if isinstance(s.get("items"), dict):
        errors += _validate(s["items"], child(path, "items"), replace(place, steps=(*place.steps, None), at_root=False), checks)
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
        found = error.error
        return [*errors, FieldError(found.type, child(at, found.field), found.detail, found.value)]
    if found_errors := objectmeta.validate_embedded(node, value, at):
        return errors + found_errors
    return errors + (_value_errors(s, at) or checks.rule_errors(node, s["default"], at, root=root))


def _in_metadata(s: Object, at: str, place: _Place, checks: _Checks) -> list[FieldError]:
    """A default inside apiVersion, kind or metadata is looked at in its place in an otherwise empty resource."""
    whole = _surround(copy(s["default"]), place.steps)
    whole = {"apiVersion": "validation/v1", "kind": "Validation", **whole}
    root = build({**place.root, _EMBEDDED: True})
    try:
        objectmeta.coerce_embedded(root, whole)
    except CoerceError as error:
        return [invalid(at, s["default"], f"must result in valid metadata: {error.error}")]
    if errors := objectmeta.validate_embedded(root, whole):
        texts = ", ".join(str(e) for e in errors)
        return [invalid(at, s["default"], f"must result in valid metadata: {texts if len(errors) == 1 else f'[{texts}]'}")]
    node = build(s)
    return _value_errors(s, at) or checks.rule_errors(node, s["default"], at, root=False)


def _value_errors(s: Object, at: str) -> list[FieldError]:
    """What has no field of its own stands at the default. Int-or-strings are judged by their anyOf alone (Structural.ToKubeOpenAPI)."""
    errors = validation.validate(build(_without_int_or_string(s)), s["default"], at)
    return [replace(e, field=at) if e.field == "<nil>" else e for e in errors]


def _without_int_or_string(s: Object) -> Object:
    found = {name: value for name, value in s.items() if name != "x-kubernetes-int-or-string"}
    for name in ("items", "additionalProperties"):
        if isinstance(s.get(name), dict):
            found[name] = _without_int_or_string(s[name])
    if s.get("properties"):
        found["properties"] = {name: _without_int_or_string(prop) for name, prop in s["properties"].items()}
    return found


def _surround(value: Any, steps: tuple[str | None, ...]) -> Object:
    for step in reversed(steps):
        value = [value] if step is None else {step: value}
    found: Object = value
    return found
