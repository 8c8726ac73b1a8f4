"""What the controllers of definitions share: a queue of names, fed by changes, and the writing of a status.

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
    """`sync` brings one definition on, and returns when there is nothing to do."""

    name = ""
    workers = 1
    patience = 0.0
    """Seconds after a start until definitions that were there before are looked at."""

    def __init__(self, crds: Crds, client: Client) -> None:
        self.crds, self.client = crds, client
        self.queue: WorkQueue[str] = WorkQueue(self.name, self.sync)

    async def sync(self, name: str) -> None:
        raise NotImplementedError

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        """Whether a change is worth a look."""
        return new is not None

    def start(self, lifecycle: Lifecycle) -> None:
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
        """What is stored now; None where it has changed or gone meanwhile: then we are asked again."""
        try:
            return await self.client.update(CRDS, "", crd, subresource="status")
        except StatusError as refusal:
            if refusal.code in (404, 409):
                return None
            raise
