"""apps/v1."""

from __future__ import annotations

from tetrapod.core.defaults import workloads as defaults
from tetrapod.core.strategies.scale import scale
from tetrapod.core.strategies.simple import KindStrategy, status_of
from tetrapod.core.tables import workloads as tables
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import Object


class DeploymentStrategy(KindStrategy):
    """Annotations are part of what a new generation means (upstream: deployment/strategy.go)."""

    def __init__(self) -> None:
        super().__init__(default=defaults.default_deployment, status=True, generation=["spec"])

    def changes_generation(self, new: Object, old: Object) -> bool:
        return super().changes_generation(new, old) or new["metadata"].get("annotations") != old["metadata"].get("annotations")


def definitions() -> list[ResourceDefinition]:
    deployment = DeploymentStrategy()
    daemon_set = _workload(defaults.default_daemon_set)
    replica_set = _workload(defaults.default_replica_set, fields={"status.replicas": _replicas})
    stateful_set = _workload(defaults.default_stateful_set)
    revision = KindStrategy()
    return [
        builtin("apps", "controllerrevisions", revision, table=tables.CONTROLLER_REVISIONS),
        builtin("apps", "daemonsets", daemon_set, table=tables.DAEMON_SETS, subresources={"status": status_of(daemon_set)}),
        builtin(
            "apps",
            "deployments",
            deployment,
            table=tables.DEPLOYMENTS,
            subresources={"status": status_of(deployment, keep_metadata=("labels",)), "scale": scale()},
        ),
        builtin(
            "apps",
            "replicasets",
            replica_set,
            table=tables.REPLICA_SETS,
            subresources={"status": status_of(replica_set), "scale": scale()},
        ),
        builtin(
            "apps",
            "statefulsets",
            stateful_set,
            table=tables.STATEFUL_SETS,
            subresources={"status": status_of(stateful_set), "scale": scale()},
        ),
    ]


def _workload(default: object, **more: object) -> KindStrategy:
    return KindStrategy(default=default, status=True, generation=["spec"], **more)  # type: ignore[arg-type]


def _replicas(obj: Object) -> str:
    return str((obj.get("status") or {}).get("replicas", 0))
