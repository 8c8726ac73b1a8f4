"""Everything that a CRD's openAPIV3Schema must fulfil, CEL aside: structural, valid defaults, allowed keywords, sound list types.

Upstream: validateCustomResourceDefinitionValidation in apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
What an old CRD already violates is not asked of its successor: the caller says so in `Options`. CEL rules are checked by a
function given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError, go_quote
from tetrapod.machinery.schema import default_rules, structural_rules
from tetrapod.machinery.schema.default_rules import DefaultOptions
from tetrapod.machinery.schema.list_type_rules import list_type_errors
from tetrapod.machinery.schema.pruning import META_FIELDS
from tetrapod.machinery.schema.structural_rules import Schema

CheckRules: TypeAlias = Callable[[Schema, str, str], list[FieldError]]
"""(schema with x-kubernetes-validations, its path, the path above that cannot be correlated between revisions or "")."""

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_FORBIDDEN: Final = {
    "id": "id is not supported",
    "additionalItems": "additionalItems is not supported",
    "patternProperties": "patternProperties is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "$ref": "$ref is not supported",
}
_AT_ROOT: Final[Mapping[str, str]] = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
"""Keywords that the root may have beside a status subresource, with their names in the message."""


_DEFAULTS: Final = DefaultOptions()


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked; `check_rules` checks the CEL rules of one schema."""

    structural: bool = True
    valid_types: bool = True
    defaults: DefaultOptions = _DEFAULTS
    atomic_sets: bool = True
    map_keys: bool = True
    check_rules: CheckRules | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """What holds for a schema because of where it stands."""

    defaults_forbidden: str | None = None  # the reason
    inside_meta: bool = False
    root: bool = False
    uncorrelatable: str = ""  # path of the nearest part above whose elements have no identity
    rules: bool = True  # CEL rules may stand here


def validate(schema: Schema, path: str, *, status: bool = False, options: Options = Options()) -> list[FieldError]:
    """The errors of a schema at a path (`spec.versions[0].schema.openAPIV3Schema`). `status`: the version has that subresource."""
    errors = _root_errors(schema, path, status)
    unreadable = ""
    rules = True
    if options.structural:
        unreadable = structural_rules.unsupported(schema)
        if not unreadable:
            found = structural_rules.validate(schema, path) or default_rules.validate(schema, path, options.defaults)
            errors += found
            rules = not found
    walk = _Walk(options, [], [])
    walk.visit(schema, path, _Place(root=True, rules=rules and not unreadable))
    errors += walk.schema_errors + walk.rule_errors
    if not errors and unreadable:
        errors.append(field.invalid(path, "", unreadable))
    return errors


def unrecognized_formats(schema: Schema) -> list[str]:
    """The formats of strings and numbers that nobody checks, each once, in order (a warning on create and update)."""
    from tetrapod.machinery.schema.formats import known

    found: list[str] = []
    _collect_formats(schema, found, known)
    return list(dict.fromkeys(found))


_NUMBER_FORMATS: Final = frozenset({"int32", "int64", "float", "double"})


def _collect_formats(schema: Schema, found: list[str], known: Callable[[str], bool]) -> None:
    name = schema.get("format")
    if name and name not in _NUMBER_FORMATS and not known(name):
        found.append(name)
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            _collect_formats(schema[key], found, known)
    for child in (schema.get("properties") or {}).values():
        _collect_formats(child, found, known)
    for key in ("allOf", "anyOf", "oneOf"):
        for child in schema.get(key) or ():
            _collect_formats(child, found, known)


def _root_errors(schema: Schema, path: str, status: bool) -> list[FieldError]:
    errors = []
    if status:
        for key, value in schema.items():
            if value in (None, False, "", [], {}) or key == "type":
                continue
            if key not in _AT_ROOT:
                allowed = " ".join(_AT_ROOT.values())
                text = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
                errors.append(field.invalid(path, dict(schema), text))
                break
        if schema.get("type") and schema["type"] != "object":
            text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            errors.append(field.invalid(f"{path}.type", schema["type"], text))
    if schema.get("nullable"):
        errors.append(field.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return errors


@dataclass(slots=True)
class _Walk:
    """A walk over all schemas; errors of CEL rules are kept apart since they come last."""

    options: Options
    schema_errors: list[FieldError]
    rule_errors: list[FieldError]

    def visit(self, schema: Any, path: str, place: _Place) -> None:
        if not isinstance(schema, Mapping):
            return
        before = len(self.schema_errors)
        self.schema_errors += self._keyword_errors(schema, path, place)
        self._visit_children(schema, path, replace(place, root=False), is_root=place.root)
        self.schema_errors += list_type_errors(schema, path, atomic_sets=self.options.atomic_sets, map_keys=self.options.map_keys)
        check = self.options.check_rules
        if schema.get("x-kubernetes-validations") and check is not None and place.rules and len(self.schema_errors) == before:
            self.rule_errors += check(schema, path, place.uncorrelatable)

    def _keyword_errors(self, schema: Schema, path: str, place: _Place) -> list[FieldError]:
        errors = []
        kind = schema.get("type") or ""
        if self.options.valid_types and kind and kind not in _TYPES:
            errors.append(_not_supported(field.child(path, "type"), kind, _TYPES))
        if schema.get("default") is not None and place.defaults_forbidden is not None:
            errors.append(field.forbidden(field.child(path, "default"), f"must not be set {place.defaults_forbidden}".rstrip()))
        for key, text in _FORBIDDEN.items():
            if schema.get(key) not in (None, "", {}) or (key == "additionalItems" and schema.get(key) is not None):
                errors.append(field.forbidden(field.child(path, key), text))
        if kind == "null":
            errors.append(field.forbidden(field.child(path, "type"), "type cannot be set to null, use nullable as an alternative"))
        if isinstance(schema.get("items"), list) and schema["items"]:
            errors.append(field.forbidden(field.child(path, "items"), "items must be a schema object and not an array"))
        if place.inside_meta and schema.get("x-kubernetes-embedded-resource"):
            at = field.child(path, "x-kubernetes-embedded-resource")
            errors.append(field.forbidden(at, "must not be used inside of resource meta"))
        if schema.get("uniqueItems"):
            text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            errors.append(field.forbidden(field.child(path, "uniqueItems"), text))
        return errors

    def _visit_children(self, schema: Schema, path: str, place: _Place, *, is_root: bool) -> None:
        additional = schema.get("additionalProperties")
        if additional is not None:
            at = field.child(path, "additionalProperties")
            if schema.get("properties") and additional is not True:
                self.schema_errors.append(field.forbidden(at, "additionalProperties and properties are mutual exclusive"))
            reason = "inside additionalProperties applying to object metadata" if place.inside_meta else place.defaults_forbidden
            self.visit(additional, at, replace(place, defaults_forbidden=reason))
        for name, child in (schema.get("properties") or {}).items():
            self.visit(child, field.key(field.child(path, "properties"), name), self._property_place(schema, path, name, place, is_root))
        nested = replace(place, rules=False)
        self.visit(schema.get("not"), field.child(path, "not"), nested)
        for key in ("allOf", "oneOf", "anyOf"):
            for index, child in enumerate(schema.get(key) or ()):
                self.visit(child, field.index(field.child(path, key), index), nested)
        for key in ("definitions", "dependencies"):
            for name, child in (schema.get(key) or {}).items():
                self.visit(child, field.key(field.child(path, key), name), nested)
        self._visit_items(schema, path, place)

    def _property_place(self, schema: Schema, path: str, name: str, place: _Place, is_root: bool) -> _Place:
        if schema.get("x-kubernetes-map-type") == "atomic":
            place = replace(place, uncorrelatable=place.uncorrelatable or path)
        if (is_root or schema.get("x-kubernetes-embedded-resource")) and name in META_FIELDS:
            place = replace(place, inside_meta=True)
            if is_root:
                place = replace(place, defaults_forbidden=f"in top-level {name}")
        return place

    def _visit_items(self, schema: Schema, path: str, place: _Place) -> None:
        items = schema.get("items")
        if schema.get("x-kubernetes-list-type") != "map":
            place = replace(place, uncorrelatable=place.uncorrelatable or path)
        if isinstance(items, list):
            for index, child in enumerate(items):
                self.visit(child, field.index(field.child(path, "items"), index), place)
        else:
            self.visit(items, field.child(path, "items"), place)


def _not_supported(path: str, value: str, supported: Sequence[str]) -> FieldError:
    return FieldError("FieldValueNotSupported", path, f"supported values: {', '.join(go_quote(v) for v in supported)}", value)
