"""NamespaceAutoProvision, off by default: creates the namespace of a new object if it does not exist.

Upstream: plugin/pkg/admission/namespace/autoprovision
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.admission.plugins.namespace_lifecycle import NAMESPACES
from tetrapod.generic.client.interface import Client
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import GroupVersionResource
from tetrapod.machinery.status import StatusError

_RESOURCE: Final = GroupVersionResource("", "v1", "namespaces")


class NamespaceAutoProvision(Plugin):
    """The plugin NamespaceAutoProvision, which creates the namespace of a new object if it does not exist.

    Args:
        storages: provides the storage of Namespaces.
        client: creates the namespaces. It is the server's own client, so that users need no permission for that.
    """

    name = "NamespaceAutoProvision"
    operations = frozenset({"CREATE"})

    def __init__(self, storages: StorageFactory, client: Client) -> None:
        self._namespaces = Lister(storages, NAMESPACES)
        self._client = client

    def handles(self, attributes: Attributes) -> bool:
        is_namespace = (attributes.kind.group, attributes.kind.kind) == ("", "Namespace")
        return bool(attributes.namespace) and not attributes.dry_run and not is_namespace

    async def admit(self, attributes: Attributes) -> None:
        name = attributes.namespace
        if await self._namespaces.get("", name) is not None:
            return
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await self._client.create(_RESOURCE, "", namespace)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise error if error.reason == "Forbidden" else forbidden(attributes, error.message) from None
