"""`ExtensionsService`: custom resource definitions and what they define, as one service.

It puts its resources into a generic server, and itself behind it as the fallback for every group that is not installed. The
assembly (cli/) gives it what it stands on; it knows nothing of the other services.
"""

from __future__ import annotations

from tetrapod.extensions.controllers.controller import CrdController
from tetrapod.extensions.controllers.establishing import EstablishingController
from tetrapod.extensions.controllers.finalizing import FinalizingController
from tetrapod.extensions.controllers.naming import NamingController
from tetrapod.extensions.controllers.schemas import APIApprovalController, NonStructuralController
from tetrapod.extensions.crds import Crds
from tetrapod.extensions.discovery import CustomDiscovery
from tetrapod.extensions.handler import CustomResourceHandler
from tetrapod.extensions.openapi import CustomOpenAPI
from tetrapod.extensions.resources import STORAGE, definitions
from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.registry.builtin import forget_facts
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient


class ExtensionsService:
    """`definitions` are to be installed, `handler` is the fallback of the server that has them, `discovery` and `openapi` are the
    custom resources' alone. `client` goes through the front door, as the server itself.
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
        self.discovery = CustomDiscovery(self.crds)
        self.openapi = CustomOpenAPI(self.crds)
        self.handler = CustomResourceHandler(self.crds, storages, admission, lifecycle, self.discovery, webhooks, authorizer=authorizer)
        self.controllers: list[CrdController] = [
            NamingController(self.crds, client),
            EstablishingController(self.crds, client),
            NonStructuralController(self.crds, client),
            APIApprovalController(self.crds, client),
            FinalizingController(self.crds, client, self.handler.serving),
        ]
        self._lifecycle = lifecycle

    def register(self) -> None:
        """Post-start hooks, named as upstream's."""
        lifecycle = self._lifecycle

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
