"""The definition of ReplicaSets, with their defaults, validation and table columns.

Upstream: pkg/registry/apps/replicaset/strategy.go and pkg/apis/apps/validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tetrapod.core.cells import replicas_table, selector_text
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec import warnings as podspec_warnings
from tetrapod.core.podspec import workloads
from tetrapod.core.podspec.defaults import default_pod_template, set_missing
from tetrapod.core.podspec.workloads import (
    ABOVE_REPLICAS,
    NO_REPLICAS,
    TERMINATING_REPLICAS,
    scale,
    validate_counters,
    validate_maximum,
    validate_selector,
)
from tetrapod.core.validation.names import not_negative
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object


def definition() -> ResourceDefinition:
    """Return the resource definition of ReplicaSets: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=set_defaults,
        validator=validate,
        pod_template=("spec", "template"),
        warnings=podspec_warnings.replicated_warnings,
        update_validator=workloads.validate_selector_update,
        has_status=True,
        initial_status={"replicas": 0},
        generation=("spec",),
    )
    status = StatusStrategy(strategy, validate=validate_status, gated=TERMINATING_REPLICAS)
    definition = builtin(
        "apps", "replicasets", strategy, table=TABLE, subresources={"status": status, "scale": scale()}
    )
    return replace(definition, empty=NO_REPLICAS)


def set_defaults(obj: Object) -> None:
    """Set the defaults of a ReplicaSet in place: those of its pod template, and one replica."""
    spec = obj.setdefault("spec", {})
    default_pod_template(spec.get("template"))
    set_missing(spec, replicas=1)


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a ReplicaSet.

    The selector is not empty and matches the labels of the pod template, which is valid and restarts pods always.
    replicas and minReadySeconds are not negative.
    """
    spec = obj.get("spec") or {}
    errors = not_negative(spec.get("replicas"), "spec.replicas") + not_negative(
        spec.get("minReadySeconds"), "spec.minReadySeconds"
    )
    return errors + validate_selector(spec, "deployment") + workloads.validate_replicated_template(spec)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status: counters are not negative.

    fullyLabeledReplicas, readyReplicas and availableReplicas may not exceed `replicas`, nor availableReplicas
    readyReplicas.
    """
    status = new.get("status") or {}
    numbers = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    errors = validate_counters(status, (*numbers, "observedGeneration", "terminatingReplicas"))
    errors += validate_maximum(status, numbers[1:4], "replicas", ABOVE_REPLICAS)
    return errors + validate_maximum(
        status, ("availableReplicas",), "readyReplicas", "cannot be greater than readyReplicas"
    )


TABLE: Final = replicas_table(selector_text)
