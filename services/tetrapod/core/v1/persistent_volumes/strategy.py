"""Strategies of PersistentVolume and its status, which maintain lastPhaseTransitionTime.

Upstream: pkg/registry/core/persistentvolume/strategy.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339

_SINCE: Final = "lastPhaseTransitionTime"


class VolumeStrategy(KindStrategy):
    """The strategy of PersistentVolume.

    A new volume gets the phase Pending and the current time as lastPhaseTransitionTime.
    """

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", _SINCE: now_rfc3339()}


class VolumeStatusStrategy(StatusStrategy):
    """The strategy of `persistentvolumes/status`.

    It sets lastPhaseTransitionTime to the current time if the phase changes and the client has not set another time.
    """

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        status, old_status = new.setdefault("status", {}), old.get("status") or {}
        if status.get("phase") == old_status.get("phase"):
            if not status.get(_SINCE) and old_status.get(_SINCE):
                status[_SINCE] = old_status[_SINCE]
        elif not status.get(_SINCE) or status[_SINCE] == old_status.get(_SINCE):
            status[_SINCE] = now_rfc3339()  # the client changed the phase without setting the time
