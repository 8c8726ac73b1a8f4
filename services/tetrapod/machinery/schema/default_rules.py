"""Defaults in a schema must themselves be valid, and complete enough to need no pruning.

Upstream: apiextensions-apiserver/pkg/apiserver/schema/defaulting (validation.go, surroundingobject.go).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tetrapod.machinery.field import FieldError, child, invalid, key
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import objectmeta, pruning, validation
from tetrapod.machinery.schema.defaulting import copy
from tetrapod.machinery.schema.node import SchemaNode
from tetrapod.machinery.schema.objectmeta import CoerceError
from tetrapod.machinery.schema.structural import build

_META: Final = frozenset({"metadata", "apiVersion", "kind"})
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in which resource a schema stands: `steps` lead from `root` (a resource's schema) to it, None into a list."""

    root: Object
    steps: tuple[str | None, ...] = ()
    inside_meta: bool = False


def validate_defaults(schema: Object, path: str, *, pruned: bool = True) -> list[FieldError]:
    """Of a whole openAPIV3Schema that is structural. `pruned`: unknown fields are refused."""
    root = {**schema, _EMBEDDED: True}
    return _validate(root, path, _Place(root), pruned)


def _validate(s: Object, path: str, place: _Place, pruned: bool) -> list[FieldError]:
    if s.get(_EMBEDDED):
        place = _Place(s)
    errors: list[FieldError] = []
    if s.get("default") is not None:
        at = child(path, "default")
        errors += _in_metadata(s, at, place) if place.inside_meta else _default_errors(s, at, pruned)
    if isinstance(s.get("items"), dict):
        errors += _validate(s["items"], child(path, "items"), replace(place, steps=(*place.steps, None)), pruned)
    for name, prop in (s.get("properties") or {}).items():
        inside = place.inside_meta or bool(s.get(_EMBEDDED) and name in _META)
        below = _Place(place.root, (*place.steps, name), inside)
        errors += _validate(prop, key(child(path, "properties"), name), below, pruned)
    return errors


def _default_errors(s: Object, at: str, pruned: bool) -> list[FieldError]:
    node, value = build(s), copy(s["default"])
    errors: list[FieldError] = []
    if pruned and pruning.prune(node, copy(value), root=bool(s.get(_EMBEDDED))):
        errors.append(invalid(at, s["default"], "must not have unknown fields"))
    try:
        objectmeta.coerce_embedded(node, value)
    except CoerceError as error:
        found = error.error
        return [*errors, FieldError(found.type, child(at, found.field), found.detail, found.value)]
    if found_errors := objectmeta.validate_embedded(node, value, at):
        return errors + found_errors
    return errors + _value_errors(node, s["default"], at)


def _in_metadata(s: Object, at: str, place: _Place) -> list[FieldError]:
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
    return _value_errors(build(s), s["default"], at)


def _value_errors(node: SchemaNode, value: Any, at: str) -> list[FieldError]:
    """What has no field of its own stands at the default."""
    return [replace(e, field=at) if e.field == "<nil>" else e for e in validation.validate(node, value, at)]


def _surround(value: Any, steps: tuple[str | None, ...]) -> Object:
    for step in reversed(steps):
        value = [value] if step is None else {step: value}
    found: Object = value
    return found
