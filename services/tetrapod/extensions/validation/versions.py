"""Validation of one version of a definition: schema, subresources, columns and selectable fields."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from tetrapod.extensions.validation.columns import validate_column, validate_subresources
from tetrapod.extensions.validation.internal_types import is_set, rule_struct, schema_struct
from tetrapod.extensions.validation.internal_version import Version
from tetrapod.extensions.validation.selectable import validate_selectable_fields
from tetrapod.machinery.field import FieldError, TypedText, child, index, invalid
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import crd_schema
from tetrapod.machinery.schema.crd_schema import Rules

_AT_ROOT: Final = {
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
"""The fields that are allowed at the root of the schema if there is a status subresource, with their Go names for the
error text.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """The strictness of the validation of a definition. By default, all rules apply, except to the CA bundle.

    An update relaxes the rules that the stored definition violates.

    Attributes:
        rules: the rules for schemas.
        schemas_required: whether each version must have a schema.
        recognized_review_version: whether conversionReviewVersions must include one that this server supports.
        any_ca: whether an invalid CA bundle of the conversion webhook is accepted.
        unchanged: the names of versions whose schema did not change. The cost limit of single CEL rules does not apply
            to them.
    """

    rules: Rules = field(default_factory=Rules)
    schemas_required: bool = True
    recognized_review_version: bool = True
    any_ca: bool = True
    unchanged: frozenset[str] = frozenset()

    def rules_of(self, version: str) -> Rules:
        """Return `rules` for the schema of a version.

        Single CEL rules have a cost limit only if the schema of the version has changed.
        """
        return replace(self.rules, limited_costs=version not in self.unchanged)


def validate_version(version: Version, status: bool, path: str, options: Options) -> list[FieldError]:
    """Return the errors of one version: its deprecation warning, schema, subresources, columns and selectable fields.

    Args:
        version: the version in internal form.
        status: whether it has a status subresource, which restricts the root of the schema.
        path: the field path of the version, for the errors.
        options: the strictness of the validation.
    """
    errors = _deprecation_errors(version, child(path, "deprecationWarning"))
    errors += validate_schema(version.schema, status, child(path, "schema"), options.rules_of(version.name))
    errors += validate_subresources(version.subresources, child(path, "subresources"))
    for i, column in enumerate(version.columns):
        errors += validate_column(column, index(child(path, "additionalPrinterColumns"), i))
    if version.selectable:
        at = child(path, "selectableFields")
        text = "may only be set when `version.schema.openAPIV3Schema` is not included"
        schema = (version.schema or {}).get("openAPIV3Schema")
        errors += (
            [invalid(at, "", text)] if schema is None else validate_selectable_fields(version.selectable, schema, at)
        )
    return errors


def validate_schema(holder: Object | None, status: bool, path: str, rules: Rules) -> list[FieldError]:
    """Return the errors of a schema.

    With a status subresource, the type at its root is "object", and only some keywords are allowed there, such as
    properties, required and description. The other rules are those of `crd_schema.validate`.

    Args:
        holder: {"openAPIV3Schema": …}, or None for no errors.
        status: whether there is a status subresource.
        path: the field path of `holder`, for the errors.
        rules: the rules that apply.
    """
    schema = (holder or {}).get("openAPIV3Schema")
    if schema is None:
        return []
    errors = _root_errors(schema, path) if status else []
    return crd_schema.validate(schema, child(path, "openAPIV3Schema"), rules, rule_struct, errors)


def _root_errors(schema: Object, path: str) -> list[FieldError]:
    kind = schema.get("type") or ""
    if kind and kind != "object":
        text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [invalid(child(path, "openAPIV3Schema.type"), kind, text)]
    if all(name in _AT_ROOT or not is_set(name, value) for name, value in schema.items()):
        return []
    allowed = " ".join(_AT_ROOT.values())
    text = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
    return [invalid(child(path, "openAPIV3Schema"), schema_struct(schema), text)]


def _deprecation_errors(version: Version, path: str) -> list[FieldError]:
    warning = version.deprecation_warning
    if warning is None:
        return []
    if not version.deprecated:
        return [invalid(path, TypedText(warning), "can only be set for deprecated versions")]
    texts = []
    if len(warning.encode()) > 256:
        texts.append("must be <= 256 characters long")
    if not warning:
        texts.append("must not be an empty string")
    at = 0
    for char in warning:
        if not char.isprintable():
            texts.append(f"must only contain printable UTF-8 characters; non-printable character found at index {at}")
            break
        at += len(char.encode())
    return [invalid(path, TypedText(warning), text) for text in texts]
