"""The definition of ConfigMaps, with their validation and table columns.

Upstream: pkg/apis/core/validation/validation.go, ValidateConfigMap and ValidateConfigMapUpdate;
pkg/registry/core/configmap/strategy.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.data import MAX_SIZE, decoded_size, frozen
from tetrapod.core.validation.names import errors_from
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_generate_name
from tetrapod.machinery.names import is_config_map_key, name_is_dns_subdomain
from tetrapod.machinery.sorting import sort_large
from tetrapod.machinery.table import Column, TableConvertor

TABLE: Final = TableConvertor(
    (NAME, Column("Data"), AGE),
    lambda obj: [name_of(obj), len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), age(obj)],
)


def definition() -> ResourceDefinition:
    """Return the resource definition of configmaps: versions, strategy, subresources and columns."""
    strategy = KindStrategy(validator=validate, whole_update_validator=validate_update)
    return builtin("", "configmaps", strategy, table=TABLE)


def validate(obj: Object) -> list[FieldError]:
    """Validate a ConfigMap.

    Keys are valid and not in both data and binaryData. The values have at most 1 MiB in total.
    """
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    errors: list[FieldError] = []
    size = 0
    for key in sort_large(data):
        errors += errors_from(is_config_map_key, key, f"data[{key}]")
        if key in binary:
            errors.append(field.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(data[key].encode("utf-8", "surrogatepass"))
    for key in sort_large(binary):
        errors += errors_from(is_config_map_key, key, f"binaryData[{key}]")
        size += decoded_size(binary[key])
    if size > MAX_SIZE:
        errors.append(field.too_long("[]", MAX_SIZE))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated ConfigMap as a new one.

    If the stored version has `immutable: true`, this and the data are immutable. The errors of generateName follow
    those of immutable fields, as upstream.
    """
    errors = frozen(new, old, "data", "binaryData")
    return errors + validate_generate_name(new["metadata"], name_is_dns_subdomain) + validate(new)
