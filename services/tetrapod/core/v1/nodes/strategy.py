"""Strategies of Node and its status. Upstream: pkg/registry/core/node/strategy.go."""

from __future__ import annotations

from typing import Any

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.gvk import Object


class NodeStrategy(KindStrategy):
    """The strategy of Node.

    Kubelets register with a status, so a create stores the status that was sent. Updates keep the stored status.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.has_status = False  # a create keeps the status that was sent

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        _drop_disabled(obj.get("spec") or {}, {})
        (obj.get("status") or {}).pop("config", None)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = copy_value(old.get("status") or {})
        _drop_disabled(new.get("spec") or {}, old.get("spec") or {})

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


class NodeStatusStrategy(StatusStrategy):
    """The strategy of `nodes/status`, which drops status.config unless the stored Node has it."""

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        status, old_status = new.get("status") or {}, old.get("status") or {}
        if old_status.get("config") is None:
            status.pop("config", None)


def _drop_disabled(spec: Object, old_spec: Object) -> None:
    """Drop configSource and podPreemptionPolicy from `spec` unless `old_spec` has them.

    The feature of configSource was removed. podPreemptionPolicy belongs to the feature gate
    InPlacePodVerticalScalingSchedulerPreemption, which is off.
    """
    for key in ("configSource", "podPreemptionPolicy"):
        if old_spec.get(key) is None:
            spec.pop(key, None)
