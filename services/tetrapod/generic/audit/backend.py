"""`Backend`: the destination of events; a union of several backends, and one that ignores errors.

Upstream: k8s.io/apiserver/pkg/audit/{types,union}.go, ignoreErrorsBackend of pkg/server/options/audit.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tetrapod.generic.audit.event import Event


class Backend(Protocol):
    """A destination of events."""

    async def process(self, events: Sequence[Event]) -> bool:
        """Store or send events; False if that failed. It never raises."""
        ...

    async def close(self) -> None:
        """Deliver what is queued."""
        ...


class Union:
    """Several backends, called in order; if one fails, the next ones still get the events."""

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
    """The mode `blocking`: a request waits for its events to be written, but does not fail if that fails."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def process(self, events: Sequence[Event]) -> bool:
        await self._backend.process(events)
        return True

    async def close(self) -> None:
        await self._backend.close()
