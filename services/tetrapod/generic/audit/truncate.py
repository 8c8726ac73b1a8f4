"""Truncation: large events lose their objects, larger ones are dropped, and large batches are split.

Upstream: plugin/pkg/audit/truncate/truncate.go
"""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.generic.audit.backend import Backend
from tetrapod.generic.audit.event import Event
from tetrapod.generic.audit.metrics import plugin_error

_NAME = "truncate"
_WITH_OBJECTS = ("Request", "RequestResponse")


class Truncating:
    """A backend that truncates events and passes them to another one.

    `max_event_size` and `max_batch_size` are in bytes of JSON. Events that are too large even without objects are
    counted, logged and dropped.
    """

    def __init__(self, backend: Backend, max_event_size: int, max_batch_size: int) -> None:
        self._backend, self._max_event, self._max_batch = backend, max_event_size, max_batch_size

    async def process(self, events: Sequence[Event]) -> bool:
        success, size = True, 0
        batch: list[Event] = []
        impacted: list[Event] = []
        for event in events:
            fitting, length = self._fitting(event)
            if fitting is None:
                impacted.append(event)
                continue
            if batch and size + length > self._max_batch:
                success = await self._backend.process(batch) and success
                batch, size = [], 0
            size += length
            batch.append(fitting)
        if batch:
            success = await self._backend.process(batch) and success
        if impacted:
            plugin_error(_NAME, "event is too large even after truncating", impacted)
        return success

    def _fitting(self, event: Event) -> tuple[Event | None, int]:
        """Return the event in a form that does not exceed the maximum size, and its size in bytes.

        The event loses its objects if it is too large with them. If it is too large even without, return None and 0.
        """
        length = len(event.line())
        if length > self._max_event and event.document["level"] in _WITH_OBJECTS:
            event = event.without_objects()
            length = len(event.line())
        return (event, length) if length <= self._max_event else (None, 0)

    async def close(self) -> None:
        await self._backend.close()
