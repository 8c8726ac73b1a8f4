"""An openAPIV3Schema as such: keywords that are not supported, list and map types, where defaults may stand, the form of rules.

Upstream: ValidateCustomResourceDefinitionOpenAPISchema and specStandardValidatorV3 of
apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go. Whether CEL rules compile is not for this module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tetrapod.extensions.validation.listtypes import list_type_errors
from tetrapod.extensions.validation.rules import rule_errors
from tetrapod.machinery.field import FieldError, child, forbidden, index, invalid, key, not_supported
from tetrapod.machinery.gvk import Object

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_META: Final = frozenset({"metadata", "kind", "apiVersion"})
_UNIQUE: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
_LISTS: Final = ("allOf", "oneOf", "anyOf")


@dataclass(frozen=True, slots=True)
class Rules:
    """How strict to be: an update does not refuse what an older server let in."""

    valid_types: bool = True
    atomic_sets: bool = True
    keyed_lists: bool = True
    no_defaults: str | None = None  # why there may be none here
    inside_meta: bool = False


def schema_errors(schema: Any, path: str, rules: Rules, *, root: bool = False) -> list[FieldError]:
    if not isinstance(schema, dict):
        return []
    errors = _keyword_errors(schema, path, rules)
    if schema.get("uniqueItems"):
        errors.append(forbidden(child(path, "uniqueItems"), _UNIQUE))
    errors += _rest_errors(schema, path, rules)
    errors += _property_errors(schema, path, rules, root)
    errors += schema_errors(schema.get("not"), child(path, "not"), rules)
    for name in _LISTS:
        for i, nested in enumerate(schema.get(name) or ()):
            errors += schema_errors(nested, index(child(path, name), i), rules)
    for name, nested in (schema.get("definitions") or {}).items():
        errors += schema_errors(nested, key(child(path, "definitions"), name), rules)
    items = schema.get("items")
    errors += schema_errors(items, child(path, "items"), rules)
    for i, nested in enumerate(items if isinstance(items, list) else ()):
        errors += schema_errors(nested, index(child(path, "items"), i), rules)
    for name, nested in (schema.get("dependencies") or {}).items():
        errors += schema_errors(nested, key(child(path, "dependencies"), name), rules)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(child(path, "x-kubernetes-preserve-unknown-fields"), False, "must be true or undefined"))
    errors += list_type_errors(schema, path, atomic_sets=rules.atomic_sets, keyed_lists=rules.keyed_lists)
    return errors + rule_errors(schema, path)


def _rest_errors(schema: Object, path: str, rules: Rules) -> list[FieldError]:
    rest = schema.get("additionalProperties")
    if rest is None:
        return []
    errors = []
    at = child(path, "additionalProperties")
    if schema.get("properties") and rest is not True:
        errors.append(forbidden(at, "additionalProperties and properties are mutual exclusive"))
    if rules.inside_meta:
        rules = replace(rules, no_defaults="inside additionalProperties applying to object metadata")
    return errors + schema_errors(rest, at, rules)


def _property_errors(schema: Object, path: str, rules: Rules, root: bool) -> list[FieldError]:
    errors = []
    resource = root or schema.get("x-kubernetes-embedded-resource")
    for name, prop in (schema.get("properties") or {}).items():
        inner = rules
        if resource and name in _META:
            inner = replace(rules, inside_meta=True, no_defaults=f"in top-level {name}" if root else rules.no_defaults)
        errors += schema_errors(prop, key(child(path, "properties"), name), inner)
    return errors


def _keyword_errors(schema: Object, path: str, rules: Rules) -> list[FieldError]:
    errors: list[FieldError] = []

    def forbid(name: str, text: str) -> None:
        errors.append(forbidden(child(path, name), text))

    kind = schema.get("type") or ""
    if rules.valid_types and kind and kind not in TYPES:
        errors.append(not_supported(child(path, "type"), kind, TYPES))
    if schema.get("default") is not None and rules.no_defaults is not None:
        forbid("default", f"must not be set {rules.no_defaults}".rstrip())
    if schema.get("id"):
        forbid("id", "id is not supported")
    for name in ("additionalItems", "patternProperties", "definitions", "dependencies"):
        value = schema.get(name)
        if value if name in ("patternProperties", "definitions") else value is not None:
            forbid(name, f"{name} is not supported")
    if schema.get("$ref") is not None:
        forbid("$ref", "$ref is not supported")
    if kind == "null":
        forbid("type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list) and schema["items"]:
        forbid("items", "items must be a schema object and not an array")
    if rules.inside_meta and schema.get("x-kubernetes-embedded-resource"):
        forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    return errors
