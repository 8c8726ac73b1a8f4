"""Node: a kubelet registers with its status already filled in (upstream: pkg/registry/core/node/strategy.go)."""

from __future__ import annotations

from typing import Any

from tetrapod.core.strategies.simple import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.gvk import Object


class NodeStrategy(KindStrategy):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.has_status = False  # the status sent at creation counts

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
    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        status, before = new.get("status") or {}, old.get("status") or {}
        if before.get("config") is None:
            status.pop("config", None)


def _drop_disabled(spec: Object, before: Object) -> None:
    """Fields of a feature that is gone, and of one behind a gate (InPlacePodVerticalScalingSchedulerPreemption)."""
    for key in ("configSource", "podPreemptionPolicy"):
        if before.get(key) is None:
            spec.pop(key, None)
