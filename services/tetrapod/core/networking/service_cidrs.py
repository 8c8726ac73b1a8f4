"""The definition of ServiceCIDRs, with their validation and table columns.

Upstream: pkg/registry/networking/servicecidr/strategy.go and pkg/apis/networking/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import IMMUTABLE, errors_from
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.addresses import is_valid_cidr
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.ip_addresses import parse_cidr_sloppy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_ONE_EACH = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"

TABLE: Final = TableConvertor(
    (NAME, Column("CIDRs"), AGE),
    lambda obj: [name_of(obj), ",".join(spec_of(obj).get("cidrs") or []), age(obj)],
)


class ServiceCIDRStrategy(KindStrategy):
    """The strategy of ServiceCIDRs. Without the gate ServiceCIDRStatusFieldWiping, requests may set the status."""

    @property
    def has_status(self) -> bool:
        return feature_gates.enabled("ServiceCIDRStatusFieldWiping")

    @has_status.setter
    def has_status(self, value: bool) -> None:
        """Ignore the value, because the gate decides."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj.setdefault("status", {})


def definition() -> ResourceDefinition:
    """Return the resource definition of ServiceCIDRs: versions, strategy, subresources and columns."""
    strategy = ServiceCIDRStrategy(validator=validate, whole_update_validator=validate_update, initial_status={})
    status = StatusStrategy(strategy, keep_metadata=ALL_METADATA)
    return builtin(
        "networking.k8s.io",
        "servicecidrs",
        strategy,
        versions=("v1", "v1beta1"),
        table=TABLE,
        subresources={"status": status},
    )


def validate(obj: Object) -> list[FieldError]:
    """Validate a new ServiceCIDR: one or two CIDRs, at most one per IP family."""
    cidrs, path = (obj.get("spec") or {}).get("cidrs") or [], "spec.cidrs"
    if not cidrs:
        return [field.required(path, "at least one CIDR required")]
    if len(cidrs) > 2:
        return [field.invalid(path, {"CIDRs": cidrs}, "may only hold up to 2 values")]
    errors = [error for i, cidr in enumerate(cidrs) for error in errors_from(is_valid_cidr, cidr, f"{path}[{i}]")]
    parsed = [parse_cidr_sloppy(cidr) for cidr in cidrs]
    if len(cidrs) == 2 and all(parsed) and len({f[1].version for f in parsed if f}) < 2:
        errors.append(field.invalid(path, cidrs, _ONE_EACH))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated ServiceCIDR: a second CIDR may be added, existing ones are immutable.

    CIDRs that do not change are not validated again.
    """
    cidrs, old_cidrs = ((obj.get("spec") or {}).get("cidrs") or [] for obj in (new, old))
    path = "spec.cidrs"
    if cidrs == old_cidrs:
        return []
    if len(old_cidrs) == 1 and len(cidrs) == 2:
        errors = [] if cidrs[0] == old_cidrs[0] else [field.invalid(f"{path}[0]", cidrs[0], IMMUTABLE)]
        return errors + validate(new)
    if len(old_cidrs) != len(cidrs):
        return [field.invalid(path, (new.get("spec") or {}).get("cidrs"), IMMUTABLE)]
    return [
        field.invalid(f"{path}[{i}]", new, IMMUTABLE)
        for i, (new, old) in enumerate(zip(cidrs, old_cidrs, strict=True))
        if new != old
    ]
