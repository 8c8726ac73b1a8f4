"""Defaults of apps, batch and ReplicationControllers. Upstream: pkg/apis/{core,apps,batch}/v*/defaults.go."""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.claim_spec import default_claim_spec
from tetrapod.core.podspec.defaults import default_pod_template, set_missing
from tetrapod.machinery.gvk import Object


def default_deployment(obj: Object) -> None:
    """Set the defaults of a Deployment."""
    spec = obj.setdefault("spec", {})
    default_pod_template(spec.get("template"))
    set_missing(spec, replicas=1)
    strategy = spec.setdefault("strategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        set_missing(strategy, rollingUpdate={})
        set_missing(strategy["rollingUpdate"], maxUnavailable="25%", maxSurge="25%")
    set_missing(spec, revisionHistoryLimit=10, progressDeadlineSeconds=600)


def default_replica_set(obj: Object) -> None:
    """Set the defaults of a ReplicaSet."""
    spec = obj.setdefault("spec", {})
    default_pod_template(spec.get("template"))
    set_missing(spec, replicas=1)


def default_daemon_set(obj: Object) -> None:
    """Set the defaults of a DaemonSet."""
    spec = obj.setdefault("spec", {})
    default_pod_template(spec.get("template"))
    strategy = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        set_missing(strategy, rollingUpdate={})
        set_missing(strategy["rollingUpdate"], maxUnavailable=1, maxSurge=0)
    elif strategy.get("rollingUpdate") is not None:  # upstream's internal type has no pointers here, so its zero values are written
        set_missing(strategy["rollingUpdate"], maxUnavailable=0, maxSurge=0)
    set_missing(spec, revisionHistoryLimit=10)


DAEMON_SET_STATUS: Final[Object] = {
    "currentNumberScheduled": 0,
    "desiredNumberScheduled": 0,
    "numberMisscheduled": 0,
    "numberReady": 0,
}


def default_stateful_set(obj: Object) -> None:
    """Set the defaults of a StatefulSet."""
    spec = obj.setdefault("spec", {})
    default_pod_template(spec.get("template"))
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        set_missing(strategy, rollingUpdate={})
        set_missing(strategy["rollingUpdate"], partition=0)
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        set_missing(strategy["rollingUpdate"], partition=0, maxUnavailable=1)
    set_missing(spec, persistentVolumeClaimRetentionPolicy={})
    policy = spec["persistentVolumeClaimRetentionPolicy"]
    for key in ("whenDeleted", "whenScaled"):
        policy[key] = policy.get(key) or "Retain"
    set_missing(spec, replicas=1, revisionHistoryLimit=10)
    for claim in spec.get("volumeClaimTemplates") or ():
        default_claim_template(claim)


def default_claim_template(claim: Object) -> None:
    """Set the defaults of an embedded PersistentVolumeClaim, with kind, apiVersion and phase, as upstream writes it."""
    claim.update(kind="PersistentVolumeClaim", apiVersion="v1")
    default_claim_spec(claim.setdefault("spec", {}))
    status = claim.setdefault("status", {})
    status["phase"] = status.get("phase") or "Pending"
