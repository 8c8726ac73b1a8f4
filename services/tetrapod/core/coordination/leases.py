"""The definition of Leases, with their strategy, validation and table columns.

Upstream: pkg/registry/coordination/lease/strategy.go and pkg/apis/coordination/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.coordination.lease_candidates import strategy_errors
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import not_negative
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

GATE: Final = "CoordinatedLeaderElection"


class LeaseStrategy(KindStrategy):
    """The strategy of Leases.

    Without the feature gate CoordinatedLeaderElection, the fields strategy and preferredHolder are dropped. An update
    keeps those that the stored Lease has.
    """

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if feature_gates.enabled(GATE):
            return
        for key in ("strategy", "preferredHolder"):
            (obj.get("spec") or {}).pop(key, None)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        if feature_gates.enabled(GATE):
            return
        for key in ("strategy", "preferredHolder"):
            if (old.get("spec") or {}).get(key) is None:
                (new.get("spec") or {}).pop(key, None)


def definition() -> ResourceDefinition:
    """Return the resource definition of Leases: versions, strategy, subresources and columns."""
    strategy = LeaseStrategy(
        validator=validate, allow_create_on_update=True, allow_unconditional_update=False, metadata_rules="plain"
    )
    return builtin("coordination.k8s.io", "leases", strategy, table=TABLE)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new or updated Lease.

    leaseDurationSeconds is positive, and leaseTransitions is not negative. The strategy is a name with a domain or
    OldestEmulationVersion. preferredHolder needs a strategy.
    """
    spec = obj.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    errors: list[FieldError] = []
    if seconds is not None and seconds <= 0:
        errors.append(field.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    errors += not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions")
    strategy = spec.get("strategy")
    if strategy is not None:
        errors += strategy_errors(strategy, "spec.strategy")
    if spec.get("preferredHolder") and not strategy:
        text = "may only be specified if `strategy` is defined"
        errors.append(field.forbidden("spec.preferredHolder", text))
    return errors


def _row(obj: Object) -> list[Any]:
    return [name_of(obj), spec_of(obj).get("holderIdentity") or "", age(obj)]


TABLE: Final = TableConvertor((NAME, Column("Holder"), AGE), _row)
