"""Validation of the openAPIV3Schema of a CustomResourceDefinition.

The schema must be structural, its defaults valid, its keywords and list types supported, and its CEL rules must
compile.

Upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
validateCustomResourceDefinitionValidation, ValidateCustomResourceDefinitionOpenAPISchema and specStandardValidatorV3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tetrapod.machinery import string_formats
from tetrapod.machinery.field import FieldError, child, forbidden, index, invalid, key, not_supported
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.cel_rule_errors import RuleErrors, has_rules
from tetrapod.machinery.schema.default_rules import validate_defaults
from tetrapod.machinery.schema.list_type_rules import list_type_errors
from tetrapod.machinery.schema.structural_rules import unsupported, validate_structural
from tetrapod.machinery.schema.validation_rules import rule_errors

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_META: Final = frozenset({"metadata", "kind", "apiVersion"})
_UNIQUE: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
_LISTS: Final = ("allOf", "oneOf", "anyOf")
_MAPS: Final = ("properties", "patternProperties", "definitions", "dependencies")
_PARTS: Final = (
    "items", "allOf", "anyOf", "oneOf", "not", "properties", "additionalProperties", "patternProperties",
    "additionalItems", "definitions", "dependencies",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rules:
    """The strictness of the validation. An update does not reject schemas that an older server accepted.

    Attributes:
        valid_types: whether the type must be a known one.
        atomic_sets: whether items of sets must be atomic.
        keyed_lists: whether the keys of lists of type map must be required or have a default.
        pruned_defaults: whether defaults with unknown fields are rejected.
        no_defaults: the reason why this schema must not have a default, for the error; None if it may.
        inside_meta: whether the schema lies within apiVersion, kind or metadata.
        limited_costs: whether the cost limit of a single CEL rule applies.
        structural: whether the schema must be structural. Without that neither its defaults nor CEL rules are checked.
    """

    valid_types: bool = True
    atomic_sets: bool = True
    keyed_lists: bool = True
    pruned_defaults: bool = True
    no_defaults: str | None = None
    inside_meta: bool = False
    limited_costs: bool = True
    structural: bool = True


_STRICT: Final = Rules()


def validate(
    schema: Object,
    path: str,
    rules: Rules = _STRICT,
    show_rule: Callable[[Object], Any] = dict,
    earlier: Sequence[FieldError] = (),
) -> list[FieldError]:
    """Return the errors of a whole openAPIV3Schema.

    Args:
        schema: the schema. The metadata of resources within its defaults is decoded in place.
        path: the field path of the schema, for example `spec.versions[0].schema.openAPIV3Schema`.
        rules: the strictness.
        show_rule: formats a CEL rule as the value that an error quotes.
        earlier: errors of the schema that were found before, with which the result begins.
    """
    errors = [*earlier]
    if schema.get("nullable"):
        errors.append(forbidden(child(path, "nullable"), "nullable cannot be true at the root"))
    unreadable = unsupported(schema) if rules.structural else ""
    readable = rules.structural and not unreadable
    unsound = (
        validate_structural(schema, path) or validate_defaults(schema, path, pruned=rules.pruned_defaults)
        if readable
        else []
    )
    errors += unsound
    faulty: list[str] = []
    errors += _schema_errors(schema, path, rules, faulty, root=True)
    with_rules = readable and not unsound and has_rules(schema)
    checks = RuleErrors(show_rule, faulty, limited=rules.limited_costs) if with_rules else None
    if checks is not None:
        errors += checks.check(schema, path)
    if unreadable and not errors:
        errors.append(invalid(path, "", unreadable))
    return errors if checks is None else errors + checks.total_errors(path)


def unrecognized_formats(schema: Object) -> list[str]:
    """Return the formats in a schema and all schemas below it that are not validated, in document order.

    A schema may contain them, but the client gets a warning.

    Upstream: apiextensions-apiserver/pkg/apiserver/validation/formats.go, GetUnrecognizedFormats.
    """
    return [
        name
        for s in walk(schema)
        if (name := s.get("format")) and not string_formats.of_type(s.get("type") or "", name)
    ]


def unkeyed_sets(schema: Object) -> set[str]:
    """Return the types of set items in a schema that are not scalars: "object", "array", both or neither.

    Sets are lists of type set. Such items have no identity across updates, so the client gets a warning.

    Upstream: apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go,
    getNonScalarListTypeSetWarnings.
    """
    items = [
        s["items"]
        for s in walk(schema)
        if s.get("x-kubernetes-list-type") == "set" and isinstance(s.get("items"), dict)
    ]
    return {kind for item in items if (kind := item.get("type")) in ("object", "array")}


def walk(schema: Object) -> Iterator[Object]:
    """Yield a schema and all schemas within it, in document order. Values that are not objects are left out."""
    todo: list[Any] = [schema]
    while todo:
        current = todo.pop()
        if isinstance(current, list):
            todo += reversed(current)
        elif isinstance(current, dict):
            yield current
            todo += reversed(_below(current))


def _below(schema: Object) -> list[Any]:
    """Return the values of all keywords that contain schemas.

    They are schemas and lists of schemas, or values of a wrong type.
    """
    below: list[Any] = []
    for name in _PARTS:
        part = schema.get(name)
        if part:
            below += part.values() if name in _MAPS else (part,)
    return below


def _schema_errors(schema: Any, path: str, rules: Rules, faulty: list[str], *, root: bool = False) -> list[FieldError]:
    """Return the errors of a schema and of all schemas below it, except those of CEL rules.

    Args:
        schema: the schema; any value that is not an object has no errors.
        path: its field path.
        rules: the strictness.
        faulty: receives the path of every schema that has an error of its own. The error may be about a field of that
            schema.
        root: whether it is the root schema.
    """
    if not isinstance(schema, dict):
        return []
    errors = _keyword_errors(schema, path, rules)
    if schema.get("uniqueItems"):
        errors.append(forbidden(child(path, "uniqueItems"), _UNIQUE))
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        errors.append(
            forbidden(child(path, "additionalProperties"), "additionalProperties and properties are mutual exclusive")
        )
    last = _list_and_rule_errors(schema, path, rules)
    if errors or last:
        faulty.append(path)
    errors += _rest_errors(schema, path, rules, faulty)
    errors += _property_errors(schema, path, rules, faulty, root)
    errors += _schema_errors(schema.get("not"), child(path, "not"), rules, faulty)
    for name in _LISTS:
        for i, nested in enumerate(schema.get(name) or ()):
            errors += _schema_errors(nested, index(child(path, name), i), rules, faulty)
    for name, nested in (schema.get("definitions") or {}).items():
        errors += _schema_errors(nested, key(child(path, "definitions"), name), rules, faulty)
    items = schema.get("items")
    errors += _schema_errors(items, child(path, "items"), rules, faulty)
    for i, nested in enumerate(items if isinstance(items, list) else ()):
        errors += _schema_errors(nested, index(child(path, "items"), i), rules, faulty)
    for name, nested in (schema.get("dependencies") or {}).items():
        errors += _schema_errors(nested, key(child(path, "dependencies"), name), rules, faulty)
    return errors + last


def _list_and_rule_errors(schema: Object, path: str, rules: Rules) -> list[FieldError]:
    errors: list[FieldError] = []
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(child(path, "x-kubernetes-preserve-unknown-fields"), False, "must be true or undefined"))
    errors += list_type_errors(schema, path, atomic_sets=rules.atomic_sets, keyed_lists=rules.keyed_lists)
    return errors + rule_errors(schema, path)


def _rest_errors(schema: Object, path: str, rules: Rules, faulty: list[str]) -> list[FieldError]:
    """Return the errors of the schema under additionalProperties and of all below it.

    The result is [] if `schema` has no additionalProperties.

    Args:
        schema: the schema to validate.
        path: the field path of `schema`.
        rules: the strictness.
        faulty: receives the path of every schema that has an error of its own.
    """
    additional = schema.get("additionalProperties")
    if additional is None:
        return []
    if rules.inside_meta:
        rules = replace(rules, no_defaults="inside additionalProperties applying to object metadata")
    return _schema_errors(additional, child(path, "additionalProperties"), rules, faulty)


def _property_errors(schema: Object, path: str, rules: Rules, faulty: list[str], root: bool) -> list[FieldError]:
    errors = []
    resource = root or schema.get("x-kubernetes-embedded-resource")
    for name, prop in (schema.get("properties") or {}).items():
        inner = rules
        if resource and name in _META:
            inner = replace(rules, inside_meta=True, no_defaults=f"in top-level {name}" if root else rules.no_defaults)
        errors += _schema_errors(prop, key(child(path, "properties"), name), inner, faulty)
    return errors


def _keyword_errors(schema: Object, path: str, rules: Rules) -> list[FieldError]:
    errors: list[FieldError] = []

    def forbid(name: str, text: str) -> None:
        errors.append(forbidden(child(path, name), text))

    kind = schema.get("type") or ""
    if rules.valid_types and kind and kind not in TYPES:
        errors.append(not_supported(child(path, "type"), kind, TYPES, typed=False))
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
