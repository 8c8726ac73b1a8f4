"""The request handler for custom resources: all paths below /apis whose group is not built in.

The server of the extensions service calls it for every path that no other handler takes. Paths that no definition
serves get a plain-text 404. A definition uses no memory here until the first request for its objects, which creates its
`Serving`.

Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go, crdHandler.
"""

from __future__ import annotations

import asyncio

from tetrapod.extensions.crds import Crd, Crds
from tetrapod.extensions.custom.serving import Serving
from tetrapod.extensions.discovery import CustomDiscovery
from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.http.error_responses import not_found
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.server.routes import unknown_path_response
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.machinery.failure import result_of
from tetrapod.machinery.requestinfo import RequestInfo


class CustomResourceHandler:
    """The handler of all custom resources, and of discovery of their groups.

    Args:
        crds: all definitions, whose changes the handler follows.
        storages: makes the storages of the custom resources.
        admission: the server's admission chain.
        lifecycle: runs background tasks.
        discovery: answers requests for the discovery of groups and versions.
        webhooks: calls conversion webhooks.
        authorizer: passed to the handlers of custom resources; None skips their checks.
    """

    def __init__(
        self,
        crds: Crds,
        storages: StorageFactory,
        admission: AdmissionChain,
        lifecycle: Lifecycle,
        discovery: CustomDiscovery,
        webhooks: WebhookClient,
        *,
        authorizer: Authorizer | None = None,
    ) -> None:
        self._webhooks = webhooks
        self._crds = crds
        self._storages = storages
        self._admission = admission
        self._authorizer = authorizer
        self._lifecycle = lifecycle
        self._discovery = discovery
        self._servings: dict[str, Serving] = {}
        self._drops: dict[str, asyncio.Task[None]] = {}
        crds.listeners.append(self._changed)

    async def __call__(self, request: Request) -> Response:
        info = request.info
        if info is None:
            raise ValueError("the custom resource handler needs the request info")
        if not info.is_resource_request:
            answer = self._discovery.answer(request)
            if answer is not None and request.audit is not None:
                await request.audit.record_response(answer)
            return answer or unknown_path_response(self._lifecycle)
        if info.api_prefix != "apis":
            return not_found()
        crd = await self._find(info)
        if crd is None:
            return unknown_path_response(self._lifecycle)
        serving = await self.serving(crd)
        return await serving.handle(request, info.api_version)

    async def _find(self, info: RequestInfo) -> Crd | None:
        """Return the definition that serves the path of a request, or None.

        If the local copy does not have it, the storage is read, because another replica may have created it.

        Raises:
            Unavailable: the storage does not answer.
            ValueError, KeyError, TypeError: the stored object is not a definition.
        """
        name = f"{info.resource}.{info.api_group}"
        crd = self._crds.get(name)
        if crd is not None and _serves(crd, info):
            return crd
        crd = await self._crds.fresh(name)
        return crd if crd is not None and _serves(crd, info) else None

    async def serving(self, crd: Crd) -> Serving:
        """Return the handlers and the store of this revision of a definition, creating them at the first call.

        The finalizing controller uses the result too. If a definition of the same name was deleted just before, the
        call first waits until the watches and the cache of that definition's objects are closed. The handler keeps the
        result until the definition changes or is deleted; callers need not release it.
        """
        serving = self._servings.get(crd.name)
        if serving is None or serving.key != crd.serving_key:
            if (drop := self._drops.get(crd.name)) is not None:
                await result_of(drop)
            serving = self._replace(crd)
        serving.admission.terminating = crd.terminating
        return serving

    def _replace(self, crd: Crd) -> Serving:
        former = self._servings.get(crd.name)
        if former is not None and former.key == crd.serving_key:
            return former
        serving = self._servings[crd.name] = Serving(
            crd, self._storages, self._admission, self._authorizer, self._webhooks
        )
        if former is not None:
            former.retire()
            if serving.succeeds(former):
                self._lifecycle.background(f"settle/{crd.name}", serving.settle(former))
        return serving

    def _changed(self, old: Crd | None, new: Crd | None) -> None:
        if old is None:
            return
        serving = self._servings.get(old.name)
        if serving is None:
            return
        if new is None:
            del self._servings[old.name]
            serving.retire()
            drop = self._lifecycle.background(
                f"drop/{old.name}", self._drop(old.name, serving.definition.storage_prefix)
            )
            self._drops[old.name] = drop
        elif serving.key != new.serving_key:
            serving.retire()
        else:
            serving.admission.terminating = new.terminating

    async def _drop(self, name: str, prefix: str) -> None:
        try:
            await self._storages.drop(prefix)
        finally:
            self._drops.pop(name, None)


def _serves(crd: Crd, info: RequestInfo) -> bool:
    if not (crd.names_accepted or crd.established) or not crd.serves(info.api_version):
        return False
    if not crd.namespaced:
        return not info.namespace
    return bool(info.namespace) or info.verb in ("list", "watch")
