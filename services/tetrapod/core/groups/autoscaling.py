"""Resource definitions of autoscaling/v2 and v1: one kind, stored as v2, as upstream."""

from __future__ import annotations

from tetrapod.core.conversion.autoscaling import convert_autoscaler, default_autoscaler_v1, without_v1_annotations
from tetrapod.core.defaults.autoscaling import default_autoscaler_v2, default_behavior
from tetrapod.core.kind_strategy import KindStrategy, status_strategy
from tetrapod.core.tables import workloads as tables
from tetrapod.core.validation import autoscalers
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import Object


class AutoscalerStrategy(KindStrategy):
    """The strategy of HorizontalPodAutoscaler."""

    def canonicalize(self, obj: Object) -> None:
        """Default the scaling rules that came in an annotation of v1: upstream does so only when it reads the stored object."""
        super().canonicalize(obj)
        if (behavior := obj["spec"].get("behavior")) is not None:
            obj["spec"]["behavior"] = default_behavior(behavior)


def _default_v2(obj: Object) -> None:
    without_v1_annotations(obj)
    default_autoscaler_v2(obj)


def horizontal_pod_autoscalers() -> ResourceDefinition:
    """Return the definition of HorizontalPodAutoscalers."""
    strategy = AutoscalerStrategy(
        default={"v1": default_autoscaler_v1, "v2": _default_v2},
        validate=autoscalers.validate,
        whole_update=autoscalers.validate,
        status=True,
        initial_status={"desiredReplicas": 0, "currentMetrics": None},
        generation=["spec"],
    )
    return builtin(
        "autoscaling",
        "horizontalpodautoscalers",
        strategy,
        versions=("v2", "v1"),
        table=tables.HORIZONTAL_POD_AUTOSCALERS,
        subresources={"status": status_strategy(strategy, validate=autoscalers.validate_status)},
        convert=convert_autoscaler,
    )


def definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [horizontal_pod_autoscalers()]
