"""Strategies of Node and its status. Upstream: pkg/registry/core/node/strategy.go."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.generic.registry.status import StatusStrategy, ValidateStatus
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.gvk import Object

_GATES: Final = FieldGates(
    GatedFields("", ("spec.configSource",)),
    GatedFields("InPlacePodVerticalScalingSchedulerPreemption", ("spec.podPreemptionPolicy",)),
    GatedFields("NodeDeclaredFeatures", ("status.declaredFeatures",)),
)
"""The gated fields of Nodes. The feature of configSource was removed. As upstream, updates of the status keep
declaredFeatures.
"""
_STATUS_GATES: Final = FieldGates(
    GatedFields("", ("status.config",)),
    GatedFields("KubeletInUserNamespace", ("status.nodeInfo.runningInUserNamespace",)),
)


class NodeStrategy(KindStrategy):
    """The strategy of Node.

    Kubelets register with a status, so a create stores the status that was sent. Updates keep the stored status.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(gated_fields=_GATES, **options)
        self.has_status = False  # a create keeps the status that was sent

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        (obj.get("status") or {}).pop("config", None)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = copy_value(old.get("status") or {})

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


def node_status_strategy(strategy: NodeStrategy, validate: ValidateStatus) -> StatusStrategy:
    """Return the strategy of `nodes/status`.

    Args:
        strategy: the strategy of Nodes.
        validate: returns the errors of an update.
    """
    return StatusStrategy(strategy, validate=validate, gated=_STATUS_GATES)
