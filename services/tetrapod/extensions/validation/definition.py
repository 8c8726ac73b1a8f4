"""Validation of CustomResourceDefinitions on create, update and status update.

Messages and the order of errors are upstream's.

Upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tetrapod.extensions.conditions import ESTABLISHED
from tetrapod.extensions.validation.approval import validate_approval
from tetrapod.extensions.validation.columns import validate_column, validate_subresources
from tetrapod.extensions.validation.conversion import (
    ca_bundle_error,
    has_recognized_version,
    validate_conversion,
    validate_enum,
)
from tetrapod.extensions.validation.internal_version import Spec, has_status
from tetrapod.extensions.validation.selectable import validate_selectable_fields
from tetrapod.extensions.validation.versions import Options, validate_schema, validate_version
from tetrapod.machinery.conditions import is_true
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.field import FieldError, TypedText, child, distinct, index, invalid, required
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_immutable, validate_object_meta
from tetrapod.machinery.names import is_dns1035_label, is_dns1123_subdomain, name_is_dns_subdomain
from tetrapod.machinery.schema.crd_schema import TYPES, Rules, walk
from tetrapod.machinery.schema.default_rules import validate_defaults
from tetrapod.machinery.schema.list_type_rules import keyed_list_errors, set_item_errors
from tetrapod.machinery.schema.structural_rules import is_structural

SCOPES: Final = ("Cluster", "Namespaced")
_STORED: Final = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a "
    "storage migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions"
)
_PRESERVE: Final = (
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
)
_EXTENSIONS: Final = (
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
)
_MIXED = "may have mixed case, but should otherwise match: "


def validate_create(crd: Object) -> list[FieldError]:
    """Return the errors of a new definition: its metadata with the name `plural.group`, its spec, and its status."""
    spec = Spec.of(crd["spec"])

    def name_errors(name: str, prefix: bool) -> list[str]:
        named = name == f"{spec.names.get('plural') or ''}.{spec.group}"
        return name_is_dns_subdomain(name, prefix) + ([] if named else ['must be spec.names.plural+"."+spec.group'])

    errors = distinct(validate_object_meta(crd["metadata"], False, name_errors))
    errors += _spec_errors(spec, Options(), "spec")
    return errors + _after_spec(crd, None)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an update. Rules that the stored definition violates already are relaxed.

    Group and plural are immutable; once the definition is established, scope and kind are immutable too.
    """
    spec, old_spec = Spec.of(new["spec"]), Spec.of(old["spec"])
    established = is_true(old, ESTABLISHED)
    options = Options(any_ca=_any_ca(old_spec, established), unchanged=_unchanged(new, old))
    errors = _spec_errors(spec, options, "spec")
    if errors:  # the relaxed rules matter only if there are errors
        errors = _spec_errors(spec, _lenient(old_spec, options), "spec")
    if established:
        errors += validate_immutable(TypedText(spec.scope), old_spec.scope, "spec.scope")
        errors += validate_immutable(spec.names.get("kind") or "", old_spec.names.get("kind") or "", "spec.names.kind")
    errors += validate_immutable(spec.group, old_spec.group, "spec.group")
    errors += validate_immutable(
        spec.names.get("plural") or "", old_spec.names.get("plural") or "", "spec.names.plural"
    )
    return errors + _after_spec(new, old)


def validate_status_update(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of status.acceptedNames; other parts of the status are not validated, and `old` is not used."""
    return validate_names((new.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")


def _after_spec(new: Object, old: Object | None) -> list[FieldError]:
    status = new.get("status") or {}
    errors = validate_names(status.get("acceptedNames") or {}, "status.acceptedNames")
    errors += _stored_version_errors(status.get("storedVersions"), Spec.of(new["spec"]))
    errors += validate_approval(new, old)
    preserved = old is not None and old["spec"].get("preserveUnknownFields")
    if new["spec"].get("preserveUnknownFields") and not preserved:
        errors.append(invalid("spec.preserveUnknownFields", True, _PRESERVE))
    return errors


def _stored_version_errors(stored: list[str] | None, spec: Spec) -> list[FieldError]:
    """Return the errors of status.storedVersions.

    They must include the storage version, and each of them must be in spec.versions.

    Args:
        stored: status.storedVersions; None if it is not set.
        spec: the spec in internal form.
    """
    path = "status.storedVersions"
    if not stored:
        return [invalid(path, stored or None, "must have at least one stored version")]
    remaining = {name: i for i, name in enumerate(stored)}
    # A version name that is repeated in the spec is not found a second time.
    missing = [v.name for v in spec.versions if remaining.pop(v.name, None) is None and v.storage]
    errors = [invalid(path, stored, f"must have the storage version {name}") for name in missing]
    return errors + [invalid(index(path, i), name, _STORED.format(name)) for name, i in remaining.items()]


def _needs_structural(spec: Spec) -> bool:
    """Return whether the schemas of a spec must be structural, even if stored ones are not.

    Pruning, defaults and Kubernetes' extensions of schemas need that.
    """
    return not spec.preserve_unknown or any(
        s.get("default") is not None or any(s.get(key) for key in _EXTENSIONS)
        for schema in spec.schemas()
        for s in walk(schema)
    )


def _spec_errors(spec: Spec, options: Options, path: str) -> list[FieldError]:
    if not options.rules.structural and _needs_structural(spec):
        options = replace(options, rules=replace(options.rules, structural=True))
    errors = _group_errors(spec.group, child(path, "group"))
    errors += validate_enum(spec.scope, SCOPES, child(path, "scope"))
    errors += _missing_schemas(spec, options, path)
    if spec.preserve_unknown and any(s.get("default") is not None for schema in spec.schemas() for s in walk(schema)):
        text = "must be false in order to use defaults in the schema"
        errors.append(invalid(child(path, "preserveUnknownFields"), True, text))
    errors += _version_errors(spec, options, path)
    names = child(path, "names")
    errors += validate_required_names(spec.names, names) + validate_names(spec.names, names)
    errors += validate_schema(
        spec.schema, spec.status_enabled(), child(path, "validation"), options.rules_of(spec.version)
    )
    errors += validate_subresources(spec.subresources, child(path, "subresources"))
    for i, column in enumerate(spec.columns):
        errors += validate_column(column, index(child(path, "additionalPrinterColumns"), i))
    errors += _selectable_errors(spec, child(path, "selectableFields"))
    conversion = child(path, "conversion")
    if spec.preserve_unknown and (spec.conversion or {}).get("strategy", "None") != "None":
        text = "must be None if spec.preserveUnknownFields is true"
        errors.append(invalid(child(conversion, "strategy"), (spec.conversion or {}).get("strategy"), text))
    recognized = options.recognized_review_version
    return errors + validate_conversion(spec.conversion, conversion, recognized=recognized, any_ca=options.any_ca)


def _group_errors(group: str, path: str) -> list[FieldError]:
    if not group:
        return [required(path)]
    if texts := is_dns1123_subdomain(group):
        return [invalid(path, group, ",".join(texts))]
    return [] if "." in group else [invalid(path, group, "should be a domain with at least one dot")]


def _missing_schemas(spec: Spec, options: Options, path: str) -> list[FieldError]:
    if spec.schema is not None and spec.schema.get("openAPIV3Schema") is not None:
        return []
    reason = "" if options.schemas_required else "because otherwise all fields are pruned"
    errors = []
    for i, version in enumerate(spec.versions):
        if (version.schema or {}).get("openAPIV3Schema") is not None:
            continue
        if options.schemas_required or (version.served and not spec.preserve_unknown):
            errors.append(required(child(index(child(path, "versions"), i), "schema", "openAPIV3Schema"), reason))
    return errors


def _version_errors(spec: Spec, options: Options, path: str) -> list[FieldError]:
    errors = []
    at = child(path, "versions")
    per_version = any(v.subresources is not None for v in spec.versions)
    for i, version in enumerate(spec.versions):
        if texts := is_dns1035_label(version.name):
            errors.append(invalid(child(index(at, i), "name"), version.name, ",".join(texts)))
        status = has_status(version.subresources if per_version else spec.subresources)
        errors += validate_version(version, status, index(at, i), options)
    if len({v.name for v in spec.versions}) != len(spec.versions):
        errors.append(invalid(at, spec.shown_versions(), "must contain unique version names"))
    if sum(v.storage for v in spec.versions) != 1:
        errors.append(invalid(at, spec.shown_versions(), "must have exactly one version marked as storage version"))
    if spec.version and (texts := is_dns1035_label(spec.version)):
        errors.append(invalid(child(path, "version"), spec.version, ",".join(texts)))
    return errors


def _selectable_errors(spec: Spec, path: str) -> list[FieldError]:
    if not spec.selectable:
        return []
    if spec.schema is None or spec.schema.get("openAPIV3Schema") is None:
        return [invalid(path, "", "may only be set when validations.schema is included")]
    return validate_selectable_fields(spec.selectable, spec.schema["openAPIV3Schema"], path)


def _any_ca(old: Spec, established: bool) -> bool:
    """Return whether an update may set an invalid CA bundle of the conversion webhook.

    It may if the stored one is invalid, or the definition is not established yet.
    """
    if not established:
        return True
    bundle: str = (((old.conversion or {}).get("webhook") or {}).get("clientConfig") or {}).get("caBundle") or ""
    return bool(bundle and ca_bundle_error(bundle))


def _lenient(old: Spec, options: Options) -> Options:
    """Return a copy of the options that relaxes each rule that the stored definition violates.

    Args:
        old: the stored spec.
    """
    schemas = old.schemas()
    inner = [s for schema in schemas for s in walk(schema)]
    lists = [(s, s["items"]) for s in inner if isinstance(s.get("items"), dict)]
    keyed = [(s, items) for s, items in lists if s.get("x-kubernetes-list-type") in ("set", "map")]
    return Options(
        rules=Rules(
            valid_types=all(not s.get("type") or s["type"] in TYPES for s in inner),
            atomic_sets=not any(
                set_item_errors(items, "") for s, items in lists if s.get("x-kubernetes-list-type") == "set"
            ),
            keyed_lists=not any(
                keyed_list_errors(i, s.get("x-kubernetes-list-map-keys") or [], "map", "") for s, i in keyed
            ),
            pruned_defaults=not any(map(_unpruned, schemas)),
            structural=all(map(is_structural, schemas)),
        ),
        schemas_required=not _missing_schemas(old, Options(), ""),
        recognized_review_version=has_recognized_version(old.conversion),
        any_ca=options.any_ca,
        unchanged=options.unchanged,
    )


def _unpruned(schema: Object) -> bool:
    """Return whether a default in the schema has fields that the schema does not specify."""
    return any(error.detail == "must not have unknown fields" for error in validate_defaults(copy_value(schema), ""))


def _unchanged(new: Object, old: Object) -> frozenset[str]:
    """Return the names of the versions whose schema is the same in both definitions."""
    old_schemas = {v.get("name"): v.get("schema") for v in old["spec"].get("versions") or ()}
    new_schemas = [(v.get("name") or "", v.get("schema")) for v in new["spec"].get("versions") or ()]
    return frozenset(name for name, schema in new_schemas if name in old_schemas and old_schemas[name] == schema)


def validate_required_names(names: Object, path: str) -> list[FieldError]:
    """Return an error for each required name that is empty.

    Args:
        names: spec.names or status.acceptedNames.
        path: its field path, for the errors.
    """
    return [required(child(path, key)) for key in ("plural", "singular", "kind", "listKind") if not names.get(key)]


def validate_names(names: Object, path: str) -> list[FieldError]:
    """Return the format errors of spec.names or status.acceptedNames; empty names are accepted.

    Args:
        names: the names.
        path: their field path, for the errors.
    """
    errors = []
    for key in ("plural", "singular"):
        value = names.get(key) or ""
        if value and (texts := is_dns1035_label(value)):
            errors.append(invalid(child(path, key), value, ",".join(texts)))
    for key in ("kind", "listKind"):
        value = names.get(key) or ""
        if value and (texts := is_dns1035_label(value.lower())):
            errors.append(invalid(child(path, key), value, _MIXED + ",".join(texts)))
    errors += _each(names, "shortNames", path)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        errors.append(invalid(child(path, "listKind"), names["listKind"], "kind and listKind may not be the same"))
    return errors + _each(names, "categories", path)


def _each(names: Object, key: str, path: str) -> list[FieldError]:
    errors = []
    for i, name in enumerate(names.get(key) or ()):
        if texts := is_dns1035_label(name):
            errors.append(invalid(index(child(path, key), i), name, ",".join(texts)))
    return errors
