"""The definition of StatefulSets, with their defaults, validation, warnings and table columns.

Upstream: pkg/registry/apps/statefulset/strategy.go and pkg/apis/apps/validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tetrapod.core import cells
from tetrapod.core.cells import AGE, NAME, age, containers, name_of, pod_template, spec_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec import warnings as podspec_warnings
from tetrapod.core.podspec.claim_spec import claim_spec, claim_spec_warnings, default_claim_spec
from tetrapod.core.podspec.defaults import default_pod_template, set_missing
from tetrapod.core.podspec.workloads import (
    ABOVE_REPLICAS,
    NO_REPLICAS,
    pod_template_spec,
    scale,
    validate_collision_count,
    validate_counters,
    validate_maximum,
    validate_restart_policy,
    validate_selector,
    validate_template_labels,
)
from tetrapod.core.validation import differences, rolling
from tetrapod.core.validation.differences import internal_list
from tetrapod.core.validation.names import dns_label, known, not_negative
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery import field, go_structs
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_kube_finalizers
from tetrapod.machinery.names import name_is_dns_label
from tetrapod.machinery.table import Column, TableConvertor

_FROZEN: Final = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")
_OVERWRITTEN: Final = ("hostname", "subdomain")
"""Fields of the pod template that the controller overwrites."""

_MAX_UNAVAILABLE: Final = "MaxUnavailableStatefulSet"
_RECREATE: Final = "StatefulSetRecreateStrategy"
_HISTORY: Final = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)


def definition() -> ResourceDefinition:
    """Return the resource definition of StatefulSets: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=set_defaults,
        validator=validate,
        pod_template=("spec", "template"),
        warnings=warnings,
        whole_update_validator=validate_update,
        has_status=True,
        initial_status={"replicas": 0, "availableReplicas": 0},
        generation=("spec",),
        name_validator=name_is_dns_label,
        gated_fields=FieldGates(GatedFields(_MAX_UNAVAILABLE, ("spec.updateStrategy.rollingUpdate.maxUnavailable",))),
    )
    status = StatusStrategy(strategy, validate=validate_status, validates_finalizers=True)
    definition = builtin(
        "apps", "statefulsets", strategy, table=TABLE, subresources={"status": status, "scale": scale()}
    )
    return replace(definition, empty=NO_REPLICAS)


def set_defaults(obj: Object) -> None:
    """Set the defaults of a StatefulSet in place, including those of its pod template and claim templates.

    They are podManagementPolicy OrderedReady, the update strategy RollingUpdate from partition 0, the retention of
    claims, one replica, and a revisionHistoryLimit of 10.
    """
    spec = obj.setdefault("spec", {})
    default_pod_template(spec.get("template"))
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        set_missing(strategy, rollingUpdate={})
        set_missing(strategy["rollingUpdate"], partition=0)
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        set_missing(strategy["rollingUpdate"], partition=0)
        if feature_gates.enabled(_MAX_UNAVAILABLE):
            set_missing(strategy["rollingUpdate"], maxUnavailable=1)
    set_missing(spec, persistentVolumeClaimRetentionPolicy={})
    policy = spec["persistentVolumeClaimRetentionPolicy"]
    for key in ("whenDeleted", "whenScaled"):
        policy[key] = policy.get(key) or "Retain"
    set_missing(spec, replicas=1, revisionHistoryLimit=10)
    for claim in spec.get("volumeClaimTemplates") or ():
        set_claim_template_defaults(claim)


def set_claim_template_defaults(claim: Object) -> None:
    """Set the defaults of a claim template in place.

    As upstream, this writes kind, apiVersion and the phase Pending into the template.
    """
    claim.update(kind="PersistentVolumeClaim", apiVersion="v1")
    default_claim_spec(claim.setdefault("spec", {}))
    status = claim.setdefault("status", {})
    status["phase"] = status.get("phase") or "Pending"


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a new StatefulSet by all rules of `_spec`, with the whole pod template."""
    return _spec(obj.get("spec") or {}, recreate=feature_gates.enabled(_RECREATE))


def _spec(spec: Object, *, recreate: bool, update: bool = False, template: bool = True) -> list[FieldError]:
    """Validate the spec of a StatefulSet.

    - podManagementPolicy, the update strategy and the retention policy of claims are valid.
    - Claim templates are valid, and serviceName is a DNS label.
    - replicas, minReadySeconds and the start of ordinals are not negative.
    - The selector is not empty and matches the labels of the pod template.

    Args:
        recreate: whether the update strategy Recreate is allowed.
        update: whether this is an update, which does not validate claim templates and serviceName again, as they are
            immutable.
        template: whether to validate the whole pod template, or only its labels and restartPolicy.
    """
    errors = _pod_management(spec) + _update_strategy(spec.get("updateStrategy") or {}, recreate=recreate)
    if (policy := spec.get("persistentVolumeClaimRetentionPolicy")) is not None:
        for key in ("whenDeleted", "whenScaled"):
            at = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            errors += known(policy.get(key) or "", ["Retain", "Delete"], at)
    for i, claim in enumerate((not update and spec.get("volumeClaimTemplates")) or ()):
        errors += claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}].spec", template=True)
    errors += not_negative(spec.get("replicas"), "spec.replicas")
    errors += not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += not_negative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
    if not update and (name := spec.get("serviceName")):
        errors += dns_label(name, "spec.serviceName")
    errors += validate_selector(spec, "statefulset")
    return errors + _template(spec, whole=template)


def _pod_management(spec: Object) -> list[FieldError]:
    path, policy = "spec.podManagementPolicy", spec.get("podManagementPolicy") or ""
    if not policy:
        return [field.required(path)]
    if policy in ("OrderedReady", "Parallel"):
        return []
    return [field.invalid(path, field.TypedText(policy), "must be 'OrderedReady' or 'Parallel'")]


def _update_strategy(strategy: Object, *, recreate: bool) -> list[FieldError]:
    path, kind, update = "spec.updateStrategy", strategy.get("type") or "", strategy.get("rollingUpdate")
    at = f"{path}.rollingUpdate"
    match kind:
        case "":
            return [field.required(path)]
        case _ if kind == "OnDelete" or (kind == "Recreate" and recreate):
            text = "only allowed for updateStrategy 'RollingUpdate'"
            return [] if update is None else [field.invalid(at, _rolling(update), text)]
        case "RollingUpdate":
            return [] if update is None else _rolling_update(update, at)
    rolling_update = None if update is None else _rolling(update)
    allowed = "'RollingUpdate', 'OnDelete', or 'Recreate'" if recreate else "'RollingUpdate' or 'OnDelete'"
    return [field.invalid(path, {"Type": kind, "RollingUpdate": rolling_update}, f"must be {allowed}")]


def _rolling(update: Object) -> Object:
    return {"Partition": update.get("partition") or 0, "MaxUnavailable": update.get("maxUnavailable")}


def _rolling_update(update: Object, path: str) -> list[FieldError]:
    errors = not_negative(update.get("partition"), f"{path}.partition")
    unavailable, at = update.get("maxUnavailable"), f"{path}.maxUnavailable"
    if unavailable is None:
        return errors
    errors += rolling.amount(unavailable, at)
    if rolling.number(unavailable) == 0:
        errors.append(field.invalid(at, field.as_typed(unavailable), "cannot be 0"))
    return errors + rolling.at_most_all(unavailable, at)


def _template(spec: Object, *, whole: bool) -> list[FieldError]:
    template = spec.get("template") or {}
    errors = validate_template_labels(spec)
    if errors is None:
        return [
            field.invalid("spec.selector", go_structs.selector(spec.get("selector")), ""),
            *validate_restart_policy(template, "StatefulSet"),
        ]
    if whole:
        errors += pod_template_spec(_with_claims(template, spec), "spec.template")
    return errors + validate_restart_policy(template, "StatefulSet")


def _with_claims(template: Object, spec: Object) -> Object:
    """Return a copy of the pod template as the controller completes it: with a volume for each claim template.

    hostname and subdomain, which the controller overwrites, are left out.
    """
    pod_spec = {key: value for key, value in (template.get("spec") or {}).items() if key not in _OVERWRITTEN}
    claims = dict.fromkeys((c.get("metadata") or {}).get("name") or "" for c in spec.get("volumeClaimTemplates") or ())
    if claims:
        other_volumes = [v for v in pod_spec.get("volumes") or () if (v.get("name") or "") not in claims]
        pod_spec["volumes"] = [
            *({"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims),
            *other_volumes,
        ]
    return {**template, "spec": pod_spec}


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated StatefulSet.

    selector, volumeClaimTemplates, serviceName and podManagementPolicy are immutable. The pod template is validated in
    full only if the stored spec is valid, because a rule may be newer than the stored template.
    """
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    recreate = feature_gates.enabled(_RECREATE) or (old_spec.get("updateStrategy") or {}).get("type") == "Recreate"
    whole = not _spec(old_spec, recreate=recreate, update=True)
    errors = _spec(spec, recreate=recreate, update=True, template=whole)
    for name in _FROZEN:
        value = spec.get(name)
        errors += differences.immutable(_compared(name, value), old_spec.get(name), f"spec.{name}", _shown(name, value))
    return errors


def _compared(name: str, value: object) -> object:
    """Return an updated field without the empty requests and limits of claims, which equal missing ones."""
    if name != "volumeClaimTemplates" or not isinstance(value, list):
        return value
    return [_without_empty_quantities(claim) for claim in value]


def _without_empty_quantities(claim: Object) -> Object:
    spec = claim.get("spec") or {}
    resources = spec.get("resources")
    if not resources:
        return claim
    return {**claim, "spec": {**spec, "resources": {name: value for name, value in resources.items() if value}}}


def _shown(name: str, value: object) -> object:
    if name == "selector":
        return go_structs.selector(value)  # type: ignore[arg-type]
    if name == "volumeClaimTemplates" and isinstance(value, list):
        return internal_list("PersistentVolumeClaim", value)
    return field.as_typed(value) if name == "podManagementPolicy" else value


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status: counters are not negative, and collisionCount does not decrease.

    readyReplicas, currentReplicas, updatedReplicas and availableReplicas may not exceed `replicas`, nor
    availableReplicas readyReplicas. The errors about finalizers without a domain have their place among those of the
    status.

    Upstream: pkg/apis/apps/validation/validation.go, ValidateStatefulSetStatusUpdate
    """
    status = new.get("status") or {}
    numbers = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    errors = validate_counters(status, (*numbers, "observedGeneration", "collisionCount"))
    errors += validate_maximum(status, numbers[1:], "replicas", ABOVE_REPLICAS)
    errors += validate_maximum(
        status, ("availableReplicas",), "readyReplicas", "cannot be greater than status.readyReplicas"
    )
    errors += validate_kube_finalizers(new["metadata"].get("finalizers") or (), "metadata.finalizers")
    return errors + validate_collision_count(new, old)


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return warnings about the pod template, the claim templates and a negative revisionHistoryLimit.

    An update that does not change the generation gives no warnings about the pod template.

    Args:
        old: the stored object; None on create.
    """
    spec = obj.get("spec") or {}
    warnings = podspec_warnings.changed_template_warnings(obj, old)
    suffix = "" if old is None else ".Spec"  # upstream's path on updates
    for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        warnings += claim_spec_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}]{suffix}")
    return [*warnings, _HISTORY] if (spec.get("revisionHistoryLimit") or 0) < 0 else warnings


def _row(obj: Object) -> list[Any]:
    ready, desired = status_of(obj).get("readyReplicas") or 0, spec_of(obj).get("replicas") or 0
    return [name_of(obj), f"{ready}/{desired}", age(obj), *containers(pod_template(obj))]


TABLE: Final = TableConvertor(
    (NAME, Column("Ready"), AGE, cells.CONTAINERS, cells.IMAGES),
    _row,
)
