"""The definition and the strategy of HorizontalPodAutoscalers."""

from __future__ import annotations

from typing import Final

from tetrapod.core.autoscaling.horizontal_pod_autoscalers import table as horizontal_pod_autoscalers_table
from tetrapod.core.autoscaling.horizontal_pod_autoscalers import validation as autoscalers
from tetrapod.core.autoscaling.horizontal_pod_autoscalers.conversion import (
    convert_autoscaler,
    default_autoscaler_v1,
    without_v1_annotations,
)
from tetrapod.core.autoscaling.horizontal_pod_autoscalers.defaults import default_autoscaler_v2, default_behavior
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten, Text
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery.gvk import Object

_FORM: Final = HandWritten(
    "spec.minReplicas",
    "spec.maxReplicas",
    "spec.maxReplicas#",
    "spec.scaleTargetRef",
    "spec.metrics",
    "spec.metrics!",
    "spec.behavior",
    late=autoscalers.BELOW_MINIMUM,
    texts={"FieldValueRequired spec.maxReplicas": Text("must be set and greater than 0", former="")},
)


class AutoscalerStrategy(KindStrategy):
    """The strategy of HorizontalPodAutoscalers, which sets the defaults of scaling rules after validation.

    Without the gate HPAGeneration, metadata.generation is that of a create request and does not change.
    """

    @property
    def generation(self) -> tuple[str, ...] | None:
        return ("spec",) if feature_gates.enabled("HPAGeneration") else None

    @generation.setter
    def generation(self, value: tuple[str, ...] | None) -> None:
        """Ignore the value, because the gate decides."""

    def read_back(self, obj: Object) -> None:
        """Set the defaults of spec.behavior in place.

        Scaling rules of a v2 request have their defaults already; those from an annotation of a v1 request do not.
        """
        super().read_back(obj)
        if (behavior := obj["spec"].get("behavior")) is not None:
            obj["spec"]["behavior"] = default_behavior(behavior)


def _default_v2(obj: Object) -> None:
    without_v1_annotations(obj)
    default_autoscaler_v2(obj)


def definition() -> ResourceDefinition:
    """Return the resource definition of HorizontalPodAutoscalers: versions, strategy, subresources and columns."""
    strategy = AutoscalerStrategy(
        hand_written=_FORM,
        defaults={"v1": default_autoscaler_v1, "v2": _default_v2},
        validator=autoscalers.validate,
        whole_update_validator=autoscalers.validate,
        has_status=True,
        initial_status={"desiredReplicas": 0, "currentMetrics": None},
        generation=("spec",),
    )
    return builtin(
        "autoscaling",
        "horizontalpodautoscalers",
        strategy,
        versions=("v2", "v1"),
        table=horizontal_pod_autoscalers_table.TABLE,
        subresources={"status": StatusStrategy(strategy, validate=autoscalers.validate_status)},
        convert=convert_autoscaler,
    )
