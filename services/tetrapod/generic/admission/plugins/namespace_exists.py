"""NamespaceExists, off by default: rejects writes and deletions in namespaces that do not exist.

NamespaceLifecycle, which is on by default, does more. Upstream: plugin/pkg/admission/namespace/exists
"""

from __future__ import annotations

from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.generic.admission.plugins.namespace_lifecycle import NAMESPACES
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.status import not_found


class NamespaceExists(Plugin):
    """The plugin NamespaceExists, which rejects requests in namespaces that do not exist.

    The error is a 404 that names the namespace.

    Args:
        storages: provides the storage of Namespaces.
    """

    name = "NamespaceExists"
    operations = frozenset({"CREATE", "UPDATE", "DELETE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._namespaces = Lister(storages, NAMESPACES)

    async def validate(self, attributes: Attributes) -> None:
        name = attributes.namespace
        if not name or (attributes.kind.group, attributes.kind.kind) == ("", "Namespace"):
            return
        if await self._namespaces.find("", name) is None:
            raise not_found(GroupResource("", "namespaces"), name)
