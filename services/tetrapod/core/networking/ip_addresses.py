"""The definition of IPAddresses, with their validation and table columns.

Upstream: pkg/registry/networking/ipaddress/strategy.go and pkg/apis/networking/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import NAME, NONE, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import IMMUTABLE, errors_from
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten, Text
from tetrapod.machinery import field
from tetrapod.machinery.addresses import is_valid_ip
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain, is_path_segment_name
from tetrapod.machinery.table import Column, TableConvertor

_FORM: Final = HandWritten(
    "spec.parentRef.group",
    "spec.parentRef.resource",
    "spec.parentRef.name",
    "spec.parentRef.namespace",
    "spec.parentRef#",
    texts={
        "FieldValueInvalid spec.parentRef": Text(
            former=IMMUTABLE, value=lambda _, obj: internal("ParentReference", obj["spec"].get("parentRef") or {})
        )
    },
)


def definition() -> ResourceDefinition:
    """Return the resource definition of IPAddresses: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        hand_written=_FORM,
        validator=validate,
        update_validator=validate_update,
        name_validator=validate_name,
        revalidates_generate_name="before finalizers",
    )
    return builtin("networking.k8s.io", "ipaddresses", strategy, versions=("v1", "v1beta1"), table=TABLE)


def validate_name(name: str, prefix: bool) -> list[str]:
    """Return the errors about an IPAddress's name, which must be a canonical IP address. `prefix` is not used."""
    return is_valid_ip(name)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new or updated IPAddress: parentRef has resource and name, and all its parts are valid names.

    `validate_name` checks the name of the IPAddress.
    """
    parent, path = (obj.get("spec") or {}).get("parentRef"), "spec.parentRef"
    if parent is None:
        return [field.required(path)]
    errors: list[FieldError] = []
    if group := parent.get("group"):
        errors += errors_from(is_dns1123_subdomain, group, f"{path}.group")
    for key in ("resource", "name"):
        if value := parent.get(key):
            errors += errors_from(is_path_segment_name, value, f"{path}.{key}")
        else:
            errors.append(field.required(f"{path}.{key}"))
    if namespace := parent.get("namespace"):
        errors += errors_from(is_path_segment_name, namespace, f"{path}.namespace")
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Reject a change of spec.parentRef. `validate` checks the other rules of an update."""
    parent, old_parent = ((obj.get("spec") or {}).get("parentRef") for obj in (new, old))
    return [] if same(parent, old_parent) else [field.invalid("spec.parentRef", None, IMMUTABLE)]


def _row(obj: Object) -> list[Any]:
    """Return the cells name, parentRef and age. As in upstream, the age has a cell but no column."""
    parent = spec_of(obj).get("parentRef")
    text = NONE
    if parent is not None:
        group = f".{parent['group']}" if parent.get("group") else ""
        parts = [f"{parent.get('resource', '')}{group}".lower()]
        parts += [parent["namespace"]] if parent.get("namespace") else []
        parts.append(parent.get("name", ""))
        text = "/".join(parts)
    return [name_of(obj), text, age(obj)]


TABLE: Final = TableConvertor((NAME, Column("ParentRef")), _row)
