"""Established: a definition whose names are accepted is served, and says so (upstream: pkg/controller/establish)."""

from __future__ import annotations

from tetrapod.extensions.controllers.controller import CrdController
from tetrapod.extensions.crds import Crd
from tetrapod.extensions.definitions.conditions import ESTABLISHED, condition, put


class EstablishingController(CrdController):
    name = "EstablishingController"

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        return new is not None and new.names_accepted and not new.established

    async def sync(self, name: str) -> None:
        crd = self.crds.get(name)
        if crd is None or not self.concerns(None, crd):
            return
        obj = crd.object()
        put(obj, condition(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted"))
        await self.write_status(obj)
