"""The definition of StorageVersionMigrations, with their validation and table columns.

Upstream: pkg/registry/storagemigration/strategy.go and pkg/apis/storagemigration/validation.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tetrapod.core.cells import name_of, spec_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.conditions import FIELDS, conditions
from tetrapod.core.validation.names import errors_from
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1035_label, is_dns1123_subdomain
from tetrapod.machinery.table import Column, TableConvertor

_WELL_FORMED: Final = re.compile(r"[1-9][0-9]*", re.ASCII).fullmatch


def definition() -> ResourceDefinition:
    """Return the resource definition of StorageVersionMigrations: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        update_validator=validate_update,
        has_status=True,
        allow_unconditional_update=False,
        revalidates_generate_name="before finalizers",
    )
    return builtin(
        "storagemigration.k8s.io",
        "storageversionmigrations",
        strategy,
        versions=("v1", "v1beta1"),
        table=TABLE,
        subresources={"status": StatusStrategy(strategy, keep_metadata=ALL_METADATA, validate=validate_status)},
    )


def validate(obj: Object) -> list[FieldError]:
    """Validate a new or updated StorageVersionMigration: spec.resource has a name and a valid group."""
    resource = (obj.get("spec") or {}).get("resource") or {}
    path, name, group = "spec.resource", resource.get("resource") or "", resource.get("group") or ""
    errors = errors_from(is_dns1035_label, name, f"{path}.resource") if name else []
    if not name:
        errors.append(field.required(f"{path}.resource", "resource is required to be set"))
    return errors + (errors_from(is_dns1123_subdomain, group, f"{path}.group") if group else [])


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Reject a change of spec.resource. `validate` checks the other rules of an update."""
    resource, old_resource = ((obj.get("spec") or {}).get("resource") or {} for obj in (new, old))
    if resource == old_resource:
        return []
    shown = {key: resource[key] for key in ("group", "resource") if key in resource}
    return [field.invalid("spec", {"Resource": shown}, "field is immutable")]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status of a StorageVersionMigration.

    resourceVersion is immutable once it is set. Succeeded and Failed exclude each other and stay True once they are.
    """
    status, old_status = new.get("status") or {}, old.get("status") or {}
    version, path = status.get("resourceVersion") or "", "status.resourceVersion"
    errors: list[FieldError] = []
    if version and not _WELL_FORMED(version):
        errors.append(field.invalid(path, version, f"resource version is not well formed: {version}"))
    listed = status.get("conditions") or []
    errors += conditions(listed, "status.conditions")
    if (old_status.get("resourceVersion") or version) != version:
        errors.append(field.invalid(path, version, "field is immutable"))
    new_true = {kind: _is(listed, kind) for kind in ("Succeeded", "Failed")}
    old_true = {kind: _is(old_status.get("conditions") or [], kind) for kind in new_true}
    texts = []
    if new_true["Succeeded"] and new_true["Failed"]:
        texts.append("Both success and failed conditions cannot be true at the same time")
    if old_true["Succeeded"] and not new_true["Succeeded"]:
        texts.append("Success condition cannot be set to false once it is true")
    if old_true["Failed"] and not new_true["Failed"]:
        texts.append("Failed condition cannot be set to false once it is true")
    shown = [{key: c[key] for key in FIELDS if key in c} for c in listed]
    return errors + [field.invalid("status.conditions", shown, text) for text in texts]


def _is(listed: list[Object], kind: str) -> bool:
    return any(c.get("type") == kind and c.get("status") == "True" for c in listed)


def _row(obj: Object) -> list[Any]:
    resource = spec_of(obj).get("resource") or {}
    group = f".{resource['group']}" if resource.get("group") else ""
    states = {c.get("type"): c.get("status") for c in status_of(obj).get("conditions") or []}
    state = next((t for t in ("Succeeded", "Failed", "Running") if states.get(t) == "True"), "Unknown")
    return [name_of(obj), f"{resource.get('resource', '')}{group}", state]


TABLE: Final = TableConvertor(
    (
        Column("Name"),
        Column("Resource"),
        Column("Status"),
    ),
    _row,
)
