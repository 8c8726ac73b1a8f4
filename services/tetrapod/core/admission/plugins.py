"""The admission plugins of core, in upstream's order (upstream: pkg/kubeapiserver/options/plugins.go)."""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from tetrapod.generic.client.interface import Client
from tetrapod.generic.storage.interface import StorageFactory


def plugins(storages: StorageFactory, client: Client, enabled: Sequence[str], disabled: Sequence[str]) -> list[Plugin]:
    return [NamespaceLifecycle(storages)]
