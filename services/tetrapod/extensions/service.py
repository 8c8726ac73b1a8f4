"""The extensions service: CustomResourceDefinitions and custom resources.

Its `handler` is the fallback of a generic server for all groups that are not installed there. The package `apps` passes
its dependencies; it does not import other services.
"""

from __future__ import annotations

from tetrapod.extensions.controllers.controller import CrdController
from tetrapod.extensions.controllers.establishing import EstablishingController
from tetrapod.extensions.controllers.finalizing import FinalizingController
from tetrapod.extensions.controllers.naming import NamingController
from tetrapod.extensions.controllers.schemas import APIApprovalController, NonStructuralController
from tetrapod.extensions.crds import Crd, Crds
from tetrapod.extensions.discovery import CustomDiscovery
from tetrapod.extensions.handler import CustomResourceHandler
from tetrapod.extensions.openapi import CustomOpenAPI
from tetrapod.extensions.resources import STORAGE, definitions
from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.metrics.series import restore, retire
from tetrapod.generic.registry.builtin import forget_facts
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient


class ExtensionsService:
    """The assembled extensions service.

    Attributes:
        definitions: the resources that the caller installs in the server.
        handler: the fallback of that server.
        discovery: discovery of the custom resources only.
        openapi: OpenAPI of the custom resources only.

    Args:
        client: sends requests through the aggregator, also to this service itself.
        webhooks: calls conversion webhooks.
        authorizer: passed to the handlers of custom resources; None skips their checks.
        storages: makes the storages of definitions and custom resources.
        admission: the server's admission chain.
        lifecycle: runs the post-start hooks and background tasks.
    """

    def __init__(
        self,
        storages: StorageFactory,
        admission: AdmissionChain,
        lifecycle: Lifecycle,
        client: Client,
        webhooks: WebhookClient,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.definitions: list[ResourceDefinition] = definitions()
        forget_facts()
        self.crds = Crds(storages.resource(STORAGE))
        self.crds.listeners.append(_keep_series)
        self.discovery = CustomDiscovery(self.crds)
        self.openapi = CustomOpenAPI(self.crds)
        self.handler = CustomResourceHandler(
            self.crds, storages, admission, lifecycle, self.discovery, webhooks, authorizer=authorizer
        )
        self.controllers: list[CrdController] = [
            APIApprovalController(self.crds, client),  # upstream's controllers race, and this one mostly wins
            NamingController(self.crds, client),
            EstablishingController(self.crds, client),
            NonStructuralController(self.crds, client),
            FinalizingController(self.crds, client, self.handler.serving),
        ]
        self._lifecycle = lifecycle

    def register(self) -> None:
        """Register the post-start hooks, with upstream's names: the informer, and then the controllers.

        The server is ready only when all stored definitions have been read.
        """
        lifecycle = self._lifecycle
        lifecycle.paths_known.append(self.crds.synced)

        async def start_informers() -> None:
            lifecycle.background("informer/customresourcedefinitions", self.crds.run())

        async def start_controllers() -> None:
            await self.crds.synced.wait()
            for controller in self.controllers:
                controller.start(lifecycle)

        async def synced() -> None:
            await self.crds.synced.wait()

        lifecycle.on_start("start-apiextensions-informers", start_informers)
        lifecycle.on_start("start-apiextensions-controllers", start_controllers)
        lifecycle.on_start("crd-informer-synced", synced)


def _keep_series(old: Crd | None, new: Crd | None) -> None:
    """Drop the metric series of a deleted definition and of its resource, and prevent new ones.

    If the definition exists, possibly again after a deletion, new series are admitted.

    Args:
        old: the definition before the change; None for an addition.
        new: the definition after the change; None for a deletion.
    """
    crd = new or old
    if crd is not None:
        change = retire if new is None else restore
        change({"group": crd.group, "resource": crd.plural})
        change({"crd_name": crd.name})
