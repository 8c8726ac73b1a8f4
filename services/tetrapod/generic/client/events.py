"""`EventRecorder`: creates the Events of a controller, best effort (upstream: k8s.io/client-go/tools/events)."""

from __future__ import annotations

import logging
import socket
import time
from typing import Final

from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_micro

log = logging.getLogger(__name__)

EVENTS: Final = GroupVersionResource("events.k8s.io", "v1", "events")
_REMEMBERED: Final = 1000


class EventRecorder:
    """A recorder of a controller's Events. Failures are logged at debug level, neither raised nor retried.

    Args:
        client: creates the Events.
        controller: the reportingController of the Events.
    """

    def __init__(self, client: Client, controller: str) -> None:
        self._client = client
        self._controller = controller
        self._recorded: dict[tuple[str, ...], tuple[str, str, int]] = {}

    async def record_warning(self, regarding: Object, reason: str, action: str, note: str) -> None:
        """Create a Warning event about an object.

        If an event with the same reason and note about the object was recorded before, its series is updated instead.

        Args:
            regarding: the object, with its metadata.
            reason: why the action was taken, such as "FailedCreate".
            action: what was done or failed.
            note: the text for people.
        """
        await self._record("Warning", regarding, reason, action, note)

    async def record_normal(self, regarding: Object, reason: str, action: str, note: str) -> None:
        """Create a Normal event about an object.

        If an event with the same reason and note about the object was recorded before, its series is updated instead.

        Args:
            regarding: the object, with its metadata.
            reason: why the action was taken.
            action: what was done.
            note: the text for people.
        """
        await self._record("Normal", regarding, reason, action, note)

    async def _record(self, kind: str, regarding: Object, reason: str, action: str, note: str) -> None:
        meta = regarding["metadata"]
        namespace = meta.get("namespace") or "default"
        key = (meta["uid"], reason, note)
        try:
            if key in self._recorded:
                await self._update_series(key)
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
                "regarding": _reference(regarding),
                "note": note,
                "type": kind,
            }
            await self._client.create(EVENTS, namespace, event)
            if len(self._recorded) >= _REMEMBERED:
                self._recorded.clear()
            self._recorded[key] = (namespace, name, 1)
        except (StatusError, Unavailable, OSError) as error:
            self._recorded.pop(key, None)
            log.debug("%s: the event %s of %s could not be written: %s", self._controller, reason, meta["name"], error)

    async def _update_series(self, key: tuple[str, ...]) -> None:
        """Patch the Event on the server that was recorded under `key`: increase its series count by 1.

        The errors of the client are raised.
        """
        namespace, name, count = self._recorded[key]
        series = {"count": count + 1, "lastObservedTime": now_micro()}
        await self._client.patch(EVENTS, namespace, name, {"series": series})
        self._recorded[key] = (namespace, name, count + 1)


def _reference(regarding: Object) -> Object:
    meta = regarding["metadata"]
    reference = {"kind": regarding.get("kind"), "apiVersion": regarding.get("apiVersion")}
    reference |= {key: meta.get(key) for key in ("name", "namespace", "uid", "resourceVersion")}
    return {key: value for key, value in reference.items() if value}
