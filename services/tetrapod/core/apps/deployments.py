"""The definition of Deployments, with their strategy, defaults, validation and table columns.

Upstream: pkg/registry/apps/deployment/strategy.go and pkg/apis/apps/validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tetrapod.core import cells
from tetrapod.core.apps import integer_annotations
from tetrapod.core.apps.integer_annotations import AnnotatedStatus
from tetrapod.core.cells import AGE, NAME, age, containers, name_of, pod_template, selector_text, spec_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec import warnings as podspec_warnings
from tetrapod.core.podspec import workloads
from tetrapod.core.podspec.defaults import default_pod_template, set_missing
from tetrapod.core.podspec.workloads import (
    ABOVE_REPLICAS,
    NO_REPLICAS,
    TERMINATING_REPLICAS,
    scale,
    validate_collision_count,
    validate_counters,
    validate_maximum,
    validate_selector,
)
from tetrapod.core.validation import rolling
from tetrapod.core.validation.names import not_negative
from tetrapod.generic.endpoints.decoding import ShapeError
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"


class DeploymentStrategy(KindStrategy):
    """The strategy of Deployment: a change of annotations increments metadata.generation too.

    Upstream: pkg/registry/apps/deployment/strategy.go
    """

    def default(self, obj: Object, version: str) -> None:
        super().default(obj, version)
        normalize_rollback(obj)

    def changes_generation(self, new: Object, old: Object) -> bool:
        return super().changes_generation(new, old) or new["metadata"].get("annotations") != old["metadata"].get(
            "annotations"
        )


def definition() -> ResourceDefinition:
    """Return the resource definition of Deployments: versions, strategy, subresources and columns."""
    strategy = DeploymentStrategy(
        defaults=set_defaults,
        validator=validate,
        pod_template=("spec", "template"),
        warnings=podspec_warnings.replicated_warnings,
        update_validator=workloads.validate_selector_update,
        has_status=True,
        generation=("spec",),
    )
    status = AnnotatedStatus(
        strategy,
        ROLLBACK_TO,
        keep_metadata=("labels",),
        validate=validate_status,
        gated=TERMINATING_REPLICAS,
    )
    definition = builtin(
        "apps", "deployments", strategy, table=TABLE, subresources={"status": status, "scale": scale()}
    )
    return replace(definition, hidden_annotations=frozenset({ROLLBACK_TO}), empty=NO_REPLICAS)


def normalize_rollback(obj: Object) -> None:
    """Rewrite the rollback annotation in decimal form, in place; an empty one is removed.

    Raises:
        ShapeError: the value is not an integer.
    """
    annotations = obj["metadata"].get("annotations") or {}
    if not (text := annotations.get(ROLLBACK_TO)):
        annotations.pop(ROLLBACK_TO, None)
        if not annotations:
            obj["metadata"].pop("annotations", None)
        return
    try:
        annotations[ROLLBACK_TO] = str(integer_annotations.parse_integer(text))
    except ShapeError as error:
        raise ShapeError(f"failed to parse annotation[{ROLLBACK_TO}]={text} as int64: {error}") from None


def set_defaults(obj: Object) -> None:
    """Set the defaults of a Deployment in place.

    They are those of its pod template, 1 replica, strategy RollingUpdate with maxUnavailable and maxSurge 25%,
    revisionHistoryLimit 10 and progressDeadlineSeconds 600.
    """
    spec = obj.setdefault("spec", {})
    default_pod_template(spec.get("template"))
    set_missing(spec, replicas=1)
    strategy = spec.setdefault("strategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        set_missing(strategy, rollingUpdate={})
        set_missing(strategy["rollingUpdate"], maxUnavailable="25%", maxSurge="25%")
    set_missing(spec, revisionHistoryLimit=10, progressDeadlineSeconds=600)


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a Deployment, and its rollback annotation.

    The selector is not empty and matches the labels of the pod template, which is valid and restarts pods always. The
    strategy is valid, no number is negative, and progressDeadlineSeconds is greater than minReadySeconds.
    """
    spec = obj.get("spec") or {}
    errors = not_negative(spec.get("replicas"), "spec.replicas")
    errors += validate_selector(spec, "deployment")
    errors += workloads.validate_replicated_template(spec)
    errors += _deployment_strategy(spec.get("strategy") or {})
    errors += not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += not_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")
    if rollback := (obj["metadata"].get("annotations") or {}).get(ROLLBACK_TO):
        errors += not_negative(int(rollback), "spec.rollback.version")
    if (deadline := spec.get("progressDeadlineSeconds")) is not None:
        errors += not_negative(deadline, "spec.progressDeadlineSeconds")
        if deadline <= (spec.get("minReadySeconds") or 0):
            errors.append(
                field.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
            )
    return errors


def _deployment_strategy(strategy: Object) -> list[FieldError]:
    path, kind, update = "spec.strategy", strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if update is None else [field.forbidden(f"{path}.rollingUpdate", text)]
    if kind != "RollingUpdate":
        return [field.not_supported(path, workloads.internal_strategy(kind, update), ["Recreate", "RollingUpdate"])]
    if update is None:
        return [field.required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
    unavailable, surge, at = (
        update.get("maxUnavailable"),
        update.get("maxSurge"),
        f"{path}.rollingUpdate.maxUnavailable",
    )
    errors = rolling.amount(unavailable, at) + rolling.amount(surge, f"{path}.rollingUpdate.maxSurge")
    if rolling.number(unavailable) == 0 and rolling.number(surge) == 0:
        errors.append(field.invalid(at, field.as_typed(unavailable), "may not be 0 when `maxSurge` is 0"))
    return errors + rolling.at_most_all(unavailable, at)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status: counters are not negative, and collisionCount does not decrease.

    updatedReplicas, readyReplicas and availableReplicas may not exceed `replicas`, nor availableReplicas readyReplicas.
    """
    status = new.get("status") or {}
    numbers = (
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
    )
    errors = validate_counters(status, ("observedGeneration", *numbers, "collisionCount"))
    errors += validate_maximum(
        status, ("updatedReplicas", "readyReplicas", "availableReplicas"), "replicas", ABOVE_REPLICAS
    )
    errors += validate_maximum(status, ("availableReplicas",), "readyReplicas", "cannot be greater than readyReplicas")
    return errors + validate_collision_count(new, old)


def _row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        age(obj),
        *containers(pod_template(obj)),
        selector_text(spec["selector"])
        if spec.get("selector")
        else "",  # the object of a bookmark event has no selector
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Ready"),
        Column("Up-to-date"),
        Column("Available"),
        AGE,
        cells.CONTAINERS,
        cells.IMAGES,
        cells.SELECTOR,
    ),
    _row,
)
