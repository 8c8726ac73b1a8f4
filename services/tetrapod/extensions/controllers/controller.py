"""The base class of the controllers of CustomResourceDefinitions.

It has a work queue of names that changes fill, and status updates.

Upstream: the controllers of apiextensions-apiserver/pkg/controller, each a workqueue over the shared informer.
"""

from __future__ import annotations

from tetrapod.extensions.crds import Crd, Crds
from tetrapod.extensions.resources import CRDS
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError


class CrdController:
    """A controller of CustomResourceDefinitions. Subclasses implement `sync`."""

    name = ""
    workers = 1
    patience = 0.0
    """The delay in seconds after a start before existing definitions are processed."""

    def __init__(self, crds: Crds, client: Client) -> None:
        self.crds, self.client = crds, client
        self.queue: WorkQueue[str] = WorkQueue(self.name, self.sync)

    async def sync(self, name: str) -> None:
        """Process one definition. It may have been deleted."""
        raise NotImplementedError

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        """Return whether a change must be processed. `old` is None for an addition, `new` for a deletion."""
        return new is not None

    def start(self, lifecycle: Lifecycle) -> None:
        """Queue the existing definitions, subscribe to changes, and start the workers."""
        for crd in self.crds:
            if self.concerns(None, crd):
                self.queue.add_after(crd.name, self.patience)
        self.crds.listeners.append(self._changed)
        lifecycle.background(self.name, self.queue.run(self.workers))

    def _changed(self, old: Crd | None, new: Crd | None) -> None:
        crd = new or old
        if crd is not None and self.concerns(old, new):
            self.queue.add(crd.name)

    async def write_status(self, crd: Object) -> Object | None:
        """Update the status of a definition.

        Return the stored object, or None if it was changed or deleted concurrently.

        A concurrent change queues the definition again.
        """
        try:
            return await self.client.update(CRDS, "", crd, subresource="status")
        except StatusError as error:
            if error.code in (404, 409):
                return None
            raise
