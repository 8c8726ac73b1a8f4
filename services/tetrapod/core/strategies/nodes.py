"""Node: a kubelet registers with its status already filled in (upstream: pkg/registry/core/node/strategy.go)."""

from __future__ import annotations

from typing import Any

from tetrapod.core.strategies.simple import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.entry import copy_value
from tetrapod.machinery.gvk import Object


class NodeStrategy(KindStrategy):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.has_status = False  # the status sent at creation counts

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        (obj.get("spec") or {}).pop("configSource", None)  # of a feature that is gone

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = copy_value(old.get("status") or {})

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]
