"""The webhook client of a process, shared by admission and by the conversion of custom resources."""

from __future__ import annotations

from tetrapod.apps.options.options import Options
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.generic.webhook.services import StoredServices


def build_webhook_client(options: Options, storages: StorageFactory, lifecycle: Lifecycle) -> WebhookClient:
    """Return the webhook client, which is closed at shutdown."""
    client = WebhookClient(StoredServices(storages, by_endpoints=options.aggregation.enable_routing))
    lifecycle.on_shutdown("webhooks", client.close)
    return client
