"""`EventRecorder`: creates the Events of a controller, best effort (upstream: k8s.io/client-go/tools/events)."""

from __future__ import annotations

import logging
import socket
import time
from typing import Final

from tetrapod.generic.client.interface import Client
from tetrapod.generic.unavailable import Unavailable
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_micro

log = logging.getLogger(__name__)

EVENTS: Final = GroupVersionResource("events.k8s.io", "v1", "events")
_REMEMBERED: Final = 1000


class EventRecorder:
    """A recorder of Events. Failures are logged at debug level and not retried."""

    def __init__(self, client: Client, controller: str) -> None:
        self._client = client
        self._controller = controller
        self._told: dict[tuple[str, ...], tuple[str, str, int]] = {}

    async def warn(self, about: Object, reason: str, action: str, note: str) -> None:
        """Create a Warning event. A repeated event updates the series of the first one instead."""
        await self._record("Warning", about, reason, action, note)

    async def tell(self, about: Object, reason: str, action: str, note: str) -> None:
        """Create a Normal event, like `warn`."""
        await self._record("Normal", about, reason, action, note)

    async def _record(self, kind: str, about: Object, reason: str, action: str, note: str) -> None:
        meta = about["metadata"]
        namespace = meta.get("namespace") or "default"
        key = (meta["uid"], reason, note)
        try:
            if key in self._told:
                await self._again(key)
                return
            name = f"{meta['name']}.{time.time_ns():x}"
            event = {
                "kind": "Event",
                "apiVersion": "events.k8s.io/v1",
                "metadata": {"name": name, "namespace": namespace},
                "eventTime": now_micro(),
                "reportingController": self._controller,
                "reportingInstance": f"{self._controller}-{socket.gethostname()}",
                "action": action,
                "reason": reason,
                "regarding": _reference(about),
                "note": note,
                "type": kind,
            }
            await self._client.create(EVENTS, namespace, event)
            if len(self._told) >= _REMEMBERED:
                self._told.clear()
            self._told[key] = (namespace, name, 1)
        except (StatusError, Unavailable, OSError) as error:
            self._told.pop(key, None)
            log.debug("%s: the event %s of %s could not be written: %s", self._controller, reason, meta["name"], error)

    async def _again(self, key: tuple[str, ...]) -> None:
        """Increase the series count of an event."""
        namespace, name, count = self._told[key]
        series = {"count": count + 1, "lastObservedTime": now_micro()}
        await self._client.patch(EVENTS, namespace, name, {"series": series})
        self._told[key] = (namespace, name, count + 1)


def _reference(about: Object) -> Object:
    meta = about["metadata"]
    reference = {"kind": about.get("kind"), "apiVersion": about.get("apiVersion")}
    reference |= {key: meta.get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
    return {key: value for key, value in reference.items() if value}
