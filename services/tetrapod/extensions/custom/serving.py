"""The request handlers of one custom resource for one revision of its definition.

They are made on the first request. When the definition changes, a new `Serving` replaces the old one, and the watches
of the old one are ended.

Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go, crdInfo.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from tetrapod.extensions.conversion.webhook import WebhookConverter
from tetrapod.extensions.crds import Crd
from tetrapod.extensions.custom.columns import table_convertor
from tetrapod.extensions.custom.definition import custom_definition
from tetrapod.extensions.custom.storage import Currency, CurrentStorage, revision_now
from tetrapod.extensions.custom.store import CustomStore
from tetrapod.extensions.custom.stored_defaults import DefaultsOfVersions
from tetrapod.extensions.custom.strategy import CustomStrategy
from tetrapod.extensions.custom.version_codec import VersionCodec
from tetrapod.extensions.custom.versioned_stores import ByVersion
from tetrapod.generic.admission.interface import AdmissionChain, Attributes, forbidden
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.endpoints.conversion import type_prefix
from tetrapod.generic.endpoints.handler import ResourceHandler
from tetrapod.generic.http.negotiation.accept import serves_cbor
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient

SETTLE_SECONDS: Final = 5.0
"""The time after a change during which other replicas may still write by the older definition."""


class Serving:
    """The request handlers and the store of one custom resource, for one revision of its definition.

    Attributes:
        key: the `serving_key` of the definition.
        store: the store of the storage version. All versions share it, unless their schemas differ or a webhook
            converts objects; then each other version has a store of its own.
        admission: the admission chain, which rejects creates while the definition is terminating.
        idle: an event that is set while no request is being handled.
        currency: the resourceVersion of the store after which all objects are written as this definition describes.

    Args:
        crd: the revision of the definition.
        storages: makes the storage of the objects.
        admission: the server's admission chain.
        authorizer: passed to the handlers; None skips their checks.
        webhooks: calls the conversion webhook, if there is one.
    """

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
        config = StorageConfig(
            self.definition.storage_prefix,
            hub.api_version,
            hub.kind,
            crd.namespaced,
            cbor=serves_cbor(),
            defaults=DefaultsOfVersions(crd.group, strategy.versions, hub.version),
        )
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
            codec = VersionCodec(crd.group, strategy.versions, hub.version, hub.version)
            self.store = CustomStore(self.definition, self._current(self.definition, codec))

    def _current(self, definition: ResourceDefinition, codec: VersionCodec) -> CurrentStorage:
        gvk = definition.gvk(definition.storage_version)
        prefix = type_prefix(gvk.kind, gvk.api_version)
        return CurrentStorage(self._stored, definition.group_resource, prefix, codec, self.currency)

    async def handle(self, request: Request, version: str) -> Response:
        """Handle a request for objects in a version, which must exist. Exceptions of the handler are passed on."""
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
            definition, store = (
                (self.definition, self.store) if self._by_version is None else self._by_version.version(version)
            )
            definition = replace(definition, table=table_convertor(self._strategy.versions[version].columns))
            handler = self._handlers[version] = ResourceHandler(
                definition, version, store, admission=self.admission, authorizer=self._authorizer
            )
        return handler

    def retire(self) -> None:
        """End all watches, because this revision of the definition is no longer served."""
        self.store.end_watches()
        if self._by_version is not None:
            self._by_version.end_watches()

    def succeeds(self, former: Serving) -> bool:
        """Take over `currency.current_from` from `former`, the `Serving` of the definition's previous revision.

        If both store objects in the same form, the value is copied. Otherwise it becomes None: every stored object may
        need conversion when it is read.

        Returns:
            Whether the caller must call `settle`, because requests that `former` still handles, or other replicas, may
            store objects in the former form.
        """
        if self._stores_alike(former):
            self.currency.current_from = former.currency.current_from
            return self.currency.current_from is None
        self.currency.current_from = None
        return True

    def _stores_alike(self, former: Serving) -> bool:
        """Return whether `former` stores objects with the same storage version, schema and kind as this one."""
        stored, former_stored = self._strategy.stored, former._strategy.stored
        return (
            stored.name == former_stored.name
            and stored.schema == former_stored.schema
            and self.definition.kind == former.definition.kind
        )

    async def settle(self, former: Serving) -> None:
        """Wait until objects are no longer stored by the former definition, then record the current revision.

        It waits SETTLE_SECONDS, in which other replicas are assumed to observe the change, and then for the requests of
        `former`. Objects that are written later match the definition, so that they need no conversion when they are
        read.

        Args:
            former: the `Serving` of the definition's previous revision.

        Raises:
            Unavailable: the storage cannot be read; the revision stays unknown.
        """
        await asyncio.sleep(SETTLE_SECONDS)
        await former.idle.wait()
        self.currency.current_from = await revision_now(self._stored)


def _differ(strategy: CustomStrategy) -> bool:
    """Return whether the versions have different schemas, so that they differ in more than their names.

    Args:
        strategy: the strategy, which has all versions.
    """
    return any(version.schema != strategy.stored.schema for version in strategy.versions.values())


class TerminatingAdmission:
    """The server's admission chain, extended by a check that rejects creates while the definition is terminating.

    Attributes:
        terminating: whether the definition is terminating. The request handler updates it when the definition changes.

    Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go, forbidCreateAdmission
    """

    def __init__(self, chain: AdmissionChain) -> None:
        self._chain = chain
        self.terminating = False

    def handles(self, operation: str) -> bool:
        return (self.terminating and operation == "CREATE") or self._chain.handles(operation)

    async def admit(self, attributes: Attributes) -> None:
        await self._chain.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        if self.terminating and attributes.operation == "CREATE":
            raise forbidden(attributes, "create not allowed while custom resource definition is terminating")
        await self._chain.validate(attributes)
