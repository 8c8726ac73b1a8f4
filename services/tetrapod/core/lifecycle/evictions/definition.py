"""The definition of Evictions. Upstream: pkg/registry/lifecycle/eviction/strategy.go."""

from __future__ import annotations

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.lifecycle.evictions.table import TABLE
from tetrapod.core.lifecycle.evictions.validation import validate, validate_status, validate_update
from tetrapod.core.lifecycle.targets import GROUP, validate_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy


def definition() -> ResourceDefinition:
    """Return the resource definition of Evictions: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        whole_update_validator=validate_update,
        name_validator=validate_name,
        has_status=True,
        generation=("spec",),
        allow_unconditional_update=False,
    )
    return builtin(
        GROUP,
        "evictions",
        strategy,
        versions=("v1alpha1",),
        table=TABLE,
        subresources={"status": StatusStrategy(strategy, keep_metadata=ALL_METADATA, validate=validate_status)},
    )
