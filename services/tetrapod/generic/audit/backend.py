"""`Backend`: the destination of events; a union of several backends, and one that ignores errors.

Upstream: k8s.io/apiserver/pkg/audit/{types,union}.go, ignoreErrorsBackend of pkg/server/options/audit.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tetrapod.generic.audit.event import Event


class Backend(Protocol):
    """A destination of audit events: the log, the webhook, or a wrapper of other backends."""

    async def process(self, events: Sequence[Event]) -> bool:
        """Write, send or queue events, and return True; return False if that failed. It never raises.

        If the result for the event RequestReceived is False, the request is rejected with a 500.
        """
        ...

    async def close(self) -> None:
        """Deliver the queued events, and release files and connections."""
        ...


class Union:
    """A backend that passes events to several `backends`, in order. `close` closes all of them.

    If one fails, the next ones still get the events, and `process` returns False.
    """

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = backends

    async def process(self, events: Sequence[Event]) -> bool:
        success = True
        for backend in self._backends:
            success = await backend.process(events) and success
        return success

    async def close(self) -> None:
        for backend in self._backends:
            await backend.close()


class IgnoringErrors:
    """A backend for the mode `blocking`: a request waits for its events, but does not fail if they are lost.

    `process` passes the events to `backend` and returns True in any case.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def process(self, events: Sequence[Event]) -> bool:
        await self._backend.process(events)
        return True

    async def close(self) -> None:
        await self._backend.close()
