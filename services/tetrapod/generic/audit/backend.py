"""`Backend`: where events go; several of them as one, and one whose failures do not count.

Upstream: k8s.io/apiserver/pkg/audit/{types,union}.go, ignoreErrorsBackend of pkg/server/options/audit.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tetrapod.generic.audit.event import Event


class Backend(Protocol):
    async def process(self, events: Sequence[Event]) -> bool:
        """Keep events, or say False. It never raises."""
        ...

    async def close(self) -> None:
        """Deliver what is still waiting."""
        ...


class Union:
    """Each in turn; a failure of one does not keep the events from the next."""

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
    """The mode `blocking`: a request waits for its events, but does not fail with them."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def process(self, events: Sequence[Event]) -> bool:
        await self._backend.process(events)
        return True

    async def close(self) -> None:
        await self._backend.close()
