"""`Serving`: what answers requests for the objects of one definition as it is now; made when the first request comes.

When the definition changes another takes its place, and its watches are ended. Upstream: crdInfo of
apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from tetrapod.extensions.conversion.webhook import WebhookConverter
from tetrapod.extensions.crds import Crd
from tetrapod.extensions.custom.admission import TerminatingAdmission
from tetrapod.extensions.custom.by_version import ByVersion
from tetrapod.extensions.custom.columns import table_convertor
from tetrapod.extensions.custom.definition import custom_definition
from tetrapod.extensions.custom.forms import Forms
from tetrapod.extensions.custom.storage import Currency, CurrentStorage, revision_now
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

SETTLE_SECONDS: Final = 5.0
"""After a change other replicas may write by the older definition for a moment."""


class Serving:
    """`store` has the objects in the storage version; where versions differ in more than their name, each has a store of its own."""

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
        self._stored = storages.resource(config)
        self.currency = Currency(crd.entry.revision)
        self._by_version: ByVersion | None = None
        converter: WebhookConverter | None = None
        conversion = declared["spec"].get("conversion") or {}
        if conversion.get("strategy") == "Webhook":
            converter = WebhookConverter(crd.name, crd.group, self.definition.kind, conversion, webhooks)
        if converter is not None or _differ(strategy):
            self._by_version = ByVersion(crd, declared, self._stored, self._current, converter)
            self.store = self._by_version.version(hub.version).store
        else:
            forms = Forms(crd.group, strategy.versions, hub.version, hub.version)
            self.store = CustomStore(self.definition, self._current(self.definition, forms))

    def _current(self, definition: ResourceDefinition, forms: Forms) -> CurrentStorage:
        gvk = definition.gvk(definition.storage_version)
        prefix = type_prefix(gvk.kind, gvk.api_version)
        return CurrentStorage(self._stored, definition.group_resource, prefix, forms, self.currency)

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
            definition, store = (self.definition, self.store) if self._by_version is None else self._by_version.version(version)
            definition = replace(definition, table=table_convertor(self._strategy.versions[version].columns))
            handler = self._handlers[version] = ResourceHandler(
                definition, version, store, admission=self.admission, authorizer=self._authorizer
            )
        return handler

    def retire(self) -> None:
        self.store.end_watches()
        if self._by_version is not None:
            self._by_version.end_watches()

    def succeeds(self, former: Serving) -> bool:
        """Take over from `former`. True: what is stored has to be doubted until `settle` has returned."""
        if self._stores_alike(former):
            self.currency.current_from = former.currency.current_from
            return self.currency.current_from is None
        self.currency.current_from = None
        return True

    def _stores_alike(self, former: Serving) -> bool:
        stored, before = self._strategy.stored, former._strategy.stored
        return stored.name == before.name and stored.schema == before.schema and self.definition.kind == former.definition.kind

    async def settle(self, former: Serving) -> None:
        await asyncio.sleep(SETTLE_SECONDS)
        await former.idle.wait()
        self.currency.current_from = await revision_now(self._stored)


def _differ(strategy: CustomStrategy) -> bool:
    """Whether versions differ in more than their name."""
    return any(version.schema != strategy.stored.schema for version in strategy.versions.values())
