"""NamespaceLifecycle: rejects creations in missing or terminating namespaces, and the deletion of some namespaces.

It reads namespaces from storage in every service. It is first in every chain, so that a missing namespace is reported
before all other errors.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go
"""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import StatusError, not_found

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
NAMESPACES: Final = StorageConfig(prefix="namespaces", api_version="v1", kind="Namespace", namespaced=False)
_RESOURCE: Final = GroupResource("", "namespaces")
_LIVE_LOOKUP_SECONDS: Final = 30.0
"""Seconds after a deletion in this process during which the namespace is read from the store instead of the cache."""


class NamespaceLifecycle(Plugin):
    """The plugin NamespaceLifecycle, which rejects creations in missing (404) or terminating (403) namespaces.

    It also rejects the deletion of a namespace in `immortal` (403).

    Args:
        storages: provides the storage of Namespaces.
        immortal: the names of namespaces that cannot be deleted.
    """

    name = "NamespaceLifecycle"
    operations = frozenset({"CREATE", "UPDATE", "DELETE"})

    def __init__(self, storages: StorageFactory, immortal: frozenset[str] = IMMORTAL) -> None:
        self._namespaces = Lister(storages, NAMESPACES)
        self._immortal = immortal
        self._look_live_until: dict[str, float] = {}

    async def admit(self, attributes: Attributes) -> None:
        if attributes.kind.group == "" and attributes.kind.kind == "Namespace":
            self._admit_namespace(attributes)
        elif attributes.namespace and attributes.operation == "CREATE" and not _is_access_review(attributes):
            await self._admit_content(attributes)

    def _admit_namespace(self, attributes: Attributes) -> None:
        if attributes.operation != "DELETE":
            return
        if attributes.name in self._immortal:
            raise forbidden(attributes, "this namespace may not be deleted")
        now = time.monotonic()
        self._look_live_until = {name: until for name, until in self._look_live_until.items() if until > now}
        self._look_live_until[attributes.name] = now + _LIVE_LOOKUP_SECONDS

    async def _admit_content(self, attributes: Attributes) -> None:
        namespace = await self._look_up(attributes.namespace)
        if namespace is None:
            raise not_found(_RESOURCE, attributes.namespace)
        if (namespace.get("status") or {}).get("phase") == "Terminating":
            raise _terminating(attributes)

    async def _look_up(self, name: str) -> Object | None:
        if self._look_live_until and self._look_live_until.get(name, 0.0) > time.monotonic():
            return await self._namespaces.get_live("", name)
        return await self._namespaces.find("", name)


def _is_access_review(attributes: Attributes) -> bool:
    return (
        attributes.resource.group == "authorization.k8s.io"
        and attributes.resource.resource == "localsubjectaccessreviews"
    )


def _terminating(attributes: Attributes) -> StatusError:
    namespace = attributes.namespace
    error = forbidden(
        attributes, f"unable to create new content in namespace {namespace} because it is being terminated"
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error
