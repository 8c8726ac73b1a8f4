"""Whether the defaults in a CRD's schema are valid themselves, and pruned.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go. Defaults inside the metadata of embedded
resources are judged by the object around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.schema import objectmeta, validation
from tetrapod.machinery.schema.defaulting import copy
from tetrapod.machinery.schema.node import NO_DEFAULT
from tetrapod.machinery.schema.objectmeta import CoerceError
from tetrapod.machinery.schema.pruning import META_FIELDS, prune
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema.structural_rules import Schema

_EMBEDDED: Final = "x-kubernetes-embedded-resource"


CheckDefault: TypeAlias = Callable[[Schema, Any, str], list[FieldError]]
"""(schema, its default, the default's path): the CEL rules of the schema, which a default must fulfil too."""


def _no_rules(schema: Schema, value: Any, path: str) -> list[FieldError]:
    return []


@dataclass(frozen=True, slots=True)
class DefaultOptions:
    """`require_pruned` is not asked of a CRD whose predecessor had unknown fields in defaults."""

    require_pruned: bool = True
    check: CheckDefault = _no_rules


def validate(schema: Schema, path: str, options: DefaultOptions = DefaultOptions()) -> list[FieldError]:
    """The errors of all defaults of a resource's schema."""
    root = {**schema, _EMBEDDED: True}
    return list(_walk(root, root, path, (), inside_meta=False, options=options))


def _walk(
    schema: Schema, resource: Schema, path: str, steps: tuple[str | None, ...], *, inside_meta: bool, options: DefaultOptions
) -> Iterator[FieldError]:
    """`resource` is the innermost resource's schema, `steps` lead from it here (None: into a list)."""
    if schema.get(_EMBEDDED):
        inside_meta, resource, steps = False, schema, ()
    if schema.get("default") is not None:
        at = field.child(path, "default")
        yield from _inside_meta(schema, resource, at, steps) if inside_meta else _default_errors(schema, at, options)
    if isinstance(schema.get("items"), dict):
        below = field.child(path, "items")
        yield from _walk(schema["items"], resource, below, (*steps, None), inside_meta=inside_meta, options=options)
    for name, child in (schema.get("properties") or {}).items():
        below = field.key(field.child(path, "properties"), name)
        meta = inside_meta or (bool(schema.get(_EMBEDDED)) and name in META_FIELDS)
        yield from _walk(child, resource, below, (*steps, name), inside_meta=meta, options=options)


def _default_errors(schema: Schema, path: str, options: DefaultOptions) -> Iterator[FieldError]:
    node, default = build(schema), schema["default"]
    if options.require_pruned:
        pruned = copy(default)
        prune(node, pruned, root=node.embedded_resource)
        if pruned != default:
            yield field.invalid(path, default, "must not have unknown fields")
    value = copy(default)
    try:
        objectmeta.coerce_embedded(node, value)
    except CoerceError as error:
        yield FieldError(error.error.type, field.child(path, error.error.field), error.error.detail, error.error.value)
        return
    embedded = objectmeta.validate_embedded(node, value, path)
    yield from embedded or _value_errors(schema, value, path) or options.check(schema, default, path)


def _inside_meta(schema: Schema, resource: Schema, path: str, steps: tuple[str | None, ...]) -> Iterator[FieldError]:
    obj = _surrounding(steps, copy(schema["default"]))
    node = build({**resource, _EMBEDDED: True})
    try:
        objectmeta.coerce_embedded(node, obj)
    except CoerceError as error:
        yield field.invalid(path, schema["default"], f"must result in valid metadata: {error}")
        return
    if found := objectmeta.validate_embedded(node, obj):
        texts = ", ".join(str(error) for error in found)
        listed = f"[{texts}]" if len(found) > 1 else texts
        yield field.invalid(path, schema["default"], f"must result in valid metadata: {listed}")
        return
    yield from _value_errors(schema, schema["default"], path)


def _surrounding(steps: tuple[str | None, ...], value: Any) -> Any:
    for step in reversed(steps):
        value = [value] if step is None else {step: value}
    return {"apiVersion": "validation/v1", "kind": "Validation", **value} if isinstance(value, dict) else value


def _value_errors(schema: Schema, value: Any, path: str) -> list[FieldError]:
    node = build({key: item for key, item in schema.items() if key != "default"})
    assert node.default is NO_DEFAULT
    return [_at_default(error, path) for error in validation.validate(node, value)]


def _at_default(error: FieldError, path: str) -> FieldError:
    if error.field in ("", "<nil>"):
        return FieldError(error.type, path, error.detail, error.value)
    joined = path + error.field if error.field.startswith("[") else f"{path}.{error.field}"
    return FieldError(error.type, joined, error.detail, error.value)
