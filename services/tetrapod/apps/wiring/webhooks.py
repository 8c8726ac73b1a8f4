"""The one client for webhooks of a process: admission's, and conversion's where custom resources are served."""

from __future__ import annotations

from tetrapod.apps.options.options import Options
from tetrapod.generic.lifecycle.lifecycle import Lifecycle
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.generic.webhook.services import StoredServices


def webhook_client(options: Options, storages: StorageFactory, lifecycle: Lifecycle) -> WebhookClient:
    """Return the client of webhooks, which is closed at shutdown."""
    client = WebhookClient(StoredServices(storages, by_endpoints=options.aggregation.enable_routing))
    lifecycle.on_shutdown("webhooks", client.close)
    return client
