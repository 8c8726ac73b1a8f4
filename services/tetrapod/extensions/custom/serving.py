"""`Serving`: what answers requests for the objects of one definition as it is now; made when the first request comes.

When the definition changes another takes its place, and its watches are ended. Upstream: crdInfo of
apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tetrapod.extensions.conversion.webhook import WebhookConverter
from tetrapod.extensions.crds import Crd
from tetrapod.extensions.custom.admission import TerminatingAdmission
from tetrapod.extensions.custom.columns import table_convertor
from tetrapod.extensions.custom.converted_serving import ConvertedServing
from tetrapod.extensions.custom.definition import custom_definition
from tetrapod.extensions.custom.storage import CurrentStorage, LostVersion
from tetrapod.extensions.custom.store import CustomStore
from tetrapod.extensions.custom.strategy import CustomStrategy
from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.endpoints.conversion import type_prefix
from tetrapod.generic.endpoints.handler import ResourceHandler
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.request import Request, Response
from tetrapod.generic.storage.interface import StorageConfig, StorageFactory
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.schema import defaulting, pruning

SETTLE_SECONDS: Final = 5.0
"""After a change other replicas may write by the older definition for a moment."""


class Serving:
    """`store` has the objects in the storage version; where a webhook converts them, each version has a store of its own."""

    def __init__(
        self,
        crd: Crd,
        storages: StorageFactory,
        admission: AdmissionChain,
        authorizer: Authorizer | None,
        webhooks: WebhookClient,
    ) -> None:
        self.key = crd.serving_key
        self.admission = TerminatingAdmission(admission)
        declared = crd.object()
        self.definition = custom_definition(crd, declared)
        strategy = self.definition.strategy
        assert isinstance(strategy, CustomStrategy)
        self._strategy = strategy
        self._authorizer = authorizer
        self._handlers: dict[str, ResourceHandler] = {}
        self._active = 0
        self.idle = asyncio.Event()
        self.idle.set()
        hub = self.definition.gvk(self.definition.storage_version)
        config = StorageConfig(self.definition.storage_prefix, hub.api_version, hub.kind, crd.namespaced)
        prefix = type_prefix(hub.kind, hub.api_version)
        updater = _updater(self.definition, strategy)
        self.storage = CurrentStorage(storages.resource(config), self.definition.group_resource, prefix, updater, crd.entry.revision)
        self.store = CustomStore(self.definition, self.storage)
        self._converted: ConvertedServing | None = None
        conversion = declared["spec"].get("conversion") or {}
        if conversion.get("strategy") == "Webhook":
            converter = WebhookConverter(crd.name, crd.group, self.definition.kind, conversion, webhooks)
            self._converted = ConvertedServing(crd, declared, storages.resource(config), converter)
            self.store = self._converted.version(hub.version)[1]

    async def handle(self, request: Request, version: str) -> Response:
        self._active += 1
        self.idle.clear()
        try:
            return await self._handler(version)(request)
        finally:
            self._active -= 1
            if not self._active:
                self.idle.set()

    def _handler(self, version: str) -> ResourceHandler:
        handler = self._handlers.get(version)
        if handler is None:
            definition, store = (self.definition, self.store) if self._converted is None else self._converted.version(version)
            definition = replace(definition, table=table_convertor(self._strategy.versions[version].columns))
            handler = self._handlers[version] = ResourceHandler(
                definition, version, store, admission=self.admission, authorizer=self._authorizer
            )
        return handler

    def retire(self) -> None:
        self.store.end_watches()
        if self._converted is not None:
            self._converted.end_watches()

    def succeeds(self, former: Serving) -> bool:
        """Take over from `former`. True: what is stored has to be doubted until `settle` has returned."""
        if self._stores_alike(former):
            self.storage.current_from = former.storage.current_from
            return self.storage.current_from is None
        self.storage.current_from = None
        return True

    def _stores_alike(self, former: Serving) -> bool:
        stored, before = self._strategy.stored, former._strategy.stored
        return stored.name == before.name and stored.schema == before.schema and self.definition.kind == former.definition.kind

    async def settle(self, former: Serving) -> None:
        await asyncio.sleep(SETTLE_SECONDS)
        await former.idle.wait()
        await self.storage.settle()


def _updater(definition: ResourceDefinition, strategy: CustomStrategy) -> Callable[[Object], None]:
    """Brings a stored object to what the storage version would hold today, in place."""
    versions, stored = strategy.versions, definition.storage_version
    hub = definition.gvk(stored).api_version

    def update(obj: Object) -> None:
        given = obj.get("apiVersion") or hub
        written = versions.get(GroupVersion.parse(given).version)
        if written is None:
            raise LostVersion(f"request to convert CR from an invalid group/version: {given}")
        defaulting.apply(written.node, obj)
        if given != hub:
            obj["apiVersion"] = hub
        pruning.prune(versions[stored].node, obj)

    return update
