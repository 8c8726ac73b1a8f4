"""Resource definitions of apps/v1."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.defaults import workloads as defaults
from tetrapod.core.kind_strategy import KindStrategy, status_strategy
from tetrapod.core.strategies.counted_annotations import (
    ROLLBACK_TO,
    TEMPLATE_GENERATION,
    AnnotatedStatus,
    settle_rollback,
    settle_template_generation,
)
from tetrapod.core.strategies.revisions import RevisionStore, RevisionStrategy
from tetrapod.core.subresources.scale import scale
from tetrapod.core.tables import workloads as tables
from tetrapod.core.validation import apps as validation
from tetrapod.core.validation import stateful_sets
from tetrapod.core.warnings import workloads as warnings
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import name_is_dns_label


class DeploymentStrategy(KindStrategy):
    """The strategy of Deployment: a change of annotations increments the generation too. Upstream: deployment/strategy.go."""

    def default(self, obj: Object, version: str) -> None:
        super().default(obj, version)
        settle_rollback(obj)

    def changes_generation(self, new: Object, old: Object) -> bool:
        return super().changes_generation(new, old) or new["metadata"].get("annotations") != old["metadata"].get("annotations")


class DaemonSetStrategy(KindStrategy):
    """The strategy of DaemonSet.

    An annotation holds templateGeneration, a field of older versions. A change of the template increments it.
    """

    def default(self, obj: Object, version: str) -> None:
        super().default(obj, version)
        settle_template_generation(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[TEMPLATE_GENERATION] = str(max(1, int(annotations.get(TEMPLATE_GENERATION, "1"))))

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        template_generation = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION) or "0"
        if (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
            template_generation = str(int(template_generation) + 1)
        new["metadata"].setdefault("annotations", {})[TEMPLATE_GENERATION] = template_generation


def controller_revisions() -> ResourceDefinition:
    """Return the definition of ControllerRevisions."""
    definition = builtin("apps", "controllerrevisions", RevisionStrategy(), table=tables.CONTROLLER_REVISIONS)
    return replace(definition, store=RevisionStore)


def daemon_sets() -> ResourceDefinition:
    """Return the definition of DaemonSets."""
    strategy = DaemonSetStrategy(
        default=defaults.default_daemon_set,
        validate=validation.validate_daemon_set,
        warnings=warnings.daemon_set,
        whole_update=validation.validate_daemon_set_update,
        status=True,
        initial_status=defaults.DAEMON_SET_STATUS,
        template=("spec", "template"),
        generation=["spec"],
    )
    status = AnnotatedStatus(strategy, TEMPLATE_GENERATION, validate=validation.validate_daemon_set_status)
    definition = builtin("apps", "daemonsets", strategy, table=tables.DAEMON_SETS, subresources={"status": status})
    return replace(definition, hidden_annotations=frozenset({TEMPLATE_GENERATION}))


def deployments() -> ResourceDefinition:
    """Return the definition of Deployments."""
    strategy = DeploymentStrategy(
        default=defaults.default_deployment,
        validate=validation.validate_deployment,
        template=("spec", "template"),
        warnings=warnings.replicated,
        validate_update=validation.selector_is_kept,
        status=True,
        generation=["spec"],
    )
    status = AnnotatedStatus(strategy, ROLLBACK_TO, keep_metadata=("labels",), validate=validation.validate_deployment_status)
    definition = builtin("apps", "deployments", strategy, table=tables.DEPLOYMENTS, subresources={"status": status, "scale": scale()})
    return replace(definition, hidden_annotations=frozenset({ROLLBACK_TO}))


def replica_sets() -> ResourceDefinition:
    """Return the definition of ReplicaSets."""
    strategy = KindStrategy(
        default=defaults.default_replica_set,
        validate=validation.validate_replica_set,
        template=("spec", "template"),
        warnings=warnings.replicated,
        validate_update=validation.selector_is_kept,
        status=True,
        initial_status={"replicas": 0},
        generation=["spec"],
    )
    status = status_strategy(strategy, validate=validation.validate_replica_set_status)
    return builtin("apps", "replicasets", strategy, table=tables.REPLICA_SETS, subresources={"status": status, "scale": scale()})


def stateful_set_definition() -> ResourceDefinition:
    """Return the definition of StatefulSets."""
    strategy = KindStrategy(
        default=defaults.default_stateful_set,
        validate=stateful_sets.validate,
        template=("spec", "template"),
        warnings=warnings.stateful_set,
        whole_update=stateful_sets.validate_update,
        status=True,
        initial_status={"replicas": 0, "availableReplicas": 0},
        generation=["spec"],
        name=name_is_dns_label,
    )
    status = status_strategy(strategy, validate=stateful_sets.validate_status)
    return builtin("apps", "statefulsets", strategy, table=tables.STATEFUL_SETS, subresources={"status": status, "scale": scale()})


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [controller_revisions(), daemon_sets(), deployments(), replica_sets(), stateful_set_definition()]
