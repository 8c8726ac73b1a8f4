"""The definition of VolumeAttributesClasses, with their validation and table columns.

Upstream: pkg/registry/storage/volumeattributesclass/strategy.go and pkg/apis/storage/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.storage.storage_classes import parameters, provisioner
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_generate_name
from tetrapod.machinery.names import name_is_dns_subdomain
from tetrapod.machinery.table import Column, TableConvertor

TABLE: Final = TableConvertor(
    (NAME, Column("DriverName"), AGE),
    lambda obj: [name_of(obj), obj.get("driverName", ""), age(obj)],
)


def definition() -> ResourceDefinition:
    """Return the resource definition of VolumeAttributesClasses: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        whole_update_validator=validate_update,
        return_deleted_object=True,
    )
    return builtin("storage.k8s.io", "volumeattributesclasses", strategy, versions=("v1", "v1beta1"), table=TABLE)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new VolumeAttributesClass: driverName is valid, and there is at least one parameter (`parameters`)."""
    errors = provisioner(obj.get("driverName") or "", "driverName")
    return errors + parameters(obj.get("parameters") or {}, "parameters", needed=True)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated VolumeAttributesClass as a new one; driverName and parameters are immutable.

    The errors of generateName follow those of immutable fields, as upstream.
    """
    changed = [key for key in ("driverName", "parameters") if (new.get(key) or None) != (old.get(key) or None)]
    errors = [field.forbidden(key, f"updates to {key} are forbidden.") for key in changed]
    return errors + validate_generate_name(new["metadata"], name_is_dns_subdomain) + validate(new)
