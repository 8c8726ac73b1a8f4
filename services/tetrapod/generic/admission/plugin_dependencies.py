"""`PluginDependencies`: the dependencies of admission plugins in any service."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tetrapod.generic.admission.configuration import NOTHING, PluginConfiguration
from tetrapod.generic.admission.manifests.source import ManifestLoader
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient

Background = Callable[[str, Coroutine[Any, Any, None]], object]
"""Runs a coroutine until the server stops (`Lifecycle.background`)."""


@dataclass(frozen=True, slots=True)
class PluginDependencies:
    """The dependencies of admission plugins.

    Attributes:
        storages: provides the storage of any resource.
        authorizer: decides what users may do, for plugins that require further permissions.
        client: the server's own client, which has all permissions.
        background: starts a coroutine that runs until the server stops.
        webhooks: calls external webhooks.
        break_glass: whether --break-glass is set, by which system:masters bypass webhooks and policies. Upstream has no
            such flag. Plugins ask `break_glass.bypasses`.
        toleration_seconds: --default-not-ready-toleration-seconds and --default-unreachable-toleration-seconds.
        configuration: the plugins' configurations of --admission-control-config-file.
        load_manifests: reads the manifest files that a plugin's configuration names; None if no plugin is configured.
    """

    storages: StorageFactory
    authorizer: Authorizer
    client: Client
    background: Background
    webhooks: WebhookClient
    break_glass: bool = False
    toleration_seconds: tuple[int, int] = (300, 300)
    configuration: PluginConfiguration = NOTHING
    load_manifests: ManifestLoader | None = None
