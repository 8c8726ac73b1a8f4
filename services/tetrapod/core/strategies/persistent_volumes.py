"""PersistentVolume: its status says since when it is in its phase (upstream: pkg/registry/core/persistentvolume/strategy.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.core.strategies.simple import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339

_SINCE: Final = "lastPhaseTransitionTime"


class VolumeStrategy(KindStrategy):
    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", _SINCE: now_rfc3339()}


class VolumeStatusStrategy(StatusStrategy):
    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        status, before = new.setdefault("status", {}), old.get("status") or {}
        if status.get("phase") == before.get("phase"):
            if not status.get(_SINCE) and before.get(_SINCE):
                status[_SINCE] = before[_SINCE]
        elif not status.get(_SINCE) or status[_SINCE] == before.get(_SINCE):
            status[_SINCE] = now_rfc3339()  # whoever moved it did not say when
