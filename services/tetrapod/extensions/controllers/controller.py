"""The base class of the controllers of CustomResourceDefinitions.

Changes of definitions fill a work queue of their names; workers process one name after the other.

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
    """A controller of CustomResourceDefinitions. Subclasses implement `sync` and override `concerns`.

    Attributes:
        name: the controller's name upstream.
        workers: how many definitions are processed at the same time.
        initial_delay_seconds: the seconds between `start` and the processing of the definitions that exist then.

    Args:
        crds: all definitions, whose changes the controller follows after `start`.
        client: sends the status updates.
    """

    name = ""
    workers = 1
    initial_delay_seconds = 0.0

    def __init__(self, crds: Crds, client: Client) -> None:
        self.crds, self.client = crds, client
        self.queue: WorkQueue[str] = WorkQueue(self.name, self.sync)

    async def sync(self, name: str) -> None:
        """Process the definition of this name, which may be gone. The work queue retries after an exception."""
        raise NotImplementedError

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        """Return whether `sync` must process a change. `old` is None for an addition, `new` for a deletion."""
        return new is not None

    def start(self, lifecycle: Lifecycle) -> None:
        """Queue the existing definitions, subscribe to changes, and start the workers.

        The workers process changes at once, and the definitions that exist now only after `initial_delay_seconds`.

        Args:
            lifecycle: runs the workers in the background until the server shuts down.
        """
        for crd in self.crds:
            if self.concerns(None, crd):
                self.queue.add_after(crd.name, self.initial_delay_seconds)
        self.crds.listeners.append(self._changed)
        lifecycle.background(self.name, self.queue.run(self.workers))

    def _changed(self, old: Crd | None, new: Crd | None) -> None:
        crd = new or old
        if crd is not None and self.concerns(old, new):
            self.queue.add(crd.name)

    async def write_status(self, crd: Object) -> Object | None:
        """Update the status and the metadata of a definition, but not its spec.

        Args:
            crd: the whole definition, whose resourceVersion is a precondition.

        Returns:
            The stored object, or None if the definition was changed or deleted concurrently. The concurrent change
            queues its name again.

        Raises:
            StatusError: the update failed for another reason.
        """
        try:
            return await self.client.update(CRDS, "", crd, subresource="status")
        except StatusError as error:
            if error.code in (404, 409):
                return None
            raise
