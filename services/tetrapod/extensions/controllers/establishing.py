"""The controller that sets the condition Established once the names of a definition are accepted.

Upstream: apiextensions-apiserver/pkg/controller/establish.
"""

from __future__ import annotations

from typing import Final

from tetrapod.extensions.conditions import ESTABLISHED, condition, put
from tetrapod.extensions.controllers.controller import CrdController
from tetrapod.extensions.crds import Crd
from tetrapod.extensions.validation.conversion import ca_bundle_error
from tetrapod.machinery.gvk import Object

_ACCEPTED: Final = condition(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")
_BAD_CA: Final = condition(ESTABLISHED, "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")


class EstablishingController(CrdController):
    """The controller that sets the condition Established to True once the names of a definition are accepted.

    If the CA bundle of the conversion webhook is invalid, it sets Established to False with reason InvalidCABundle.
    """

    name = "EstablishingController"
    workers = 8

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        return new is not None and new.names_accepted and not new.established

    async def sync(self, name: str) -> None:
        crd = self.crds.get(name)
        if crd is None or not self.concerns(None, crd):
            return
        obj = crd.object()
        put(obj, _BAD_CA if _has_bad_ca(obj) else _ACCEPTED)
        await self.write_status(obj)


def _has_bad_ca(crd: Object) -> bool:
    webhook = (crd["spec"].get("conversion") or {}).get("webhook") or {}
    bundle: str = (webhook.get("clientConfig") or {}).get("caBundle") or ""
    return bool(bundle and ca_bundle_error(bundle))
