"""`CoreEvaluator`, which computes what a write of a built-in kind changes in the usage of quotas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tetrapod.core.admission.kinds import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from tetrapod.core.quota.claim_context import claim_context
from tetrapod.core.quota.devices import ALONE, CLAIMS, ClaimContext
from tetrapod.core.quota.pods import unspecified_resources
from tetrapod.core.quota.scopes import in_scope, is_terminating
from tetrapod.core.quota.usage import counted_names, usage_of
from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.admission.quota import Usage, growth
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import GroupResource, Object

_UPDATES: Final = frozenset(
    {
        ("pods", ""),
        ("pods", "resize"),
        ("services", ""),
        ("persistentvolumeclaims", ""),
        ("resourceclaims.resource.k8s.io", ""),
    }
)
_PODS: Final = GroupResource("", "pods")


@dataclass(frozen=True, slots=True)
class CoreChange:
    """The effect of one create or update on the usage that quotas count.

    Attributes:
        used: quantities that the new object uses, by quota resource name.
        context: the other objects that determine the usage of a resource claim.
        old: the stored object, or None on create.
        old_used: quantities that the stored object uses.
    """

    resource: GroupResource
    new: Object
    used: Usage
    context: ClaimContext
    old: Object | None
    old_used: Usage

    def names(self, quota: Object) -> list[str]:
        """Return the names in the quota's status.hard that count the object; [] if the quota's scopes exclude it."""
        hard = (quota.get("status") or {}).get("hard") or {}
        return counted_names(self.resource, hard, self.context) if in_scope(quota, self.resource, self.new) else []

    def unspecified_resources(self, names: Sequence[str]) -> str:
        """Return the resources that a pod must specify for this quota and does not specify.

        The form is `cpu for: a,b; limits.memory for: a`, with the names of containers.

        Args:
            names: the resource names that the quota limits.

        Returns:
            "" if the pod specifies all of them, and for other kinds than pods.
        """
        return unspecified_resources(self.new, names) if self.resource == _PODS else ""

    @property
    def alone(self) -> Usage:
        """The increase of usage by quota resource name, as if quotas had no scopes. Decreases are left out."""
        return growth(self.used, self.old_used)

    def delta(self, quota: Object) -> Usage:
        """Return the increase of usage that this quota counts, by quota resource name.

        A stored object outside of the quota's scopes was not counted, so its usage is not subtracted. Decreases are
        left out.
        """
        counted = self.old is not None and in_scope(quota, self.resource, self.old)
        return growth(self.used, self.old_used if counted else {})


class CoreEvaluator:
    """The quota evaluator of built-in kinds: usage of pods, services and claims, and object counts of all others."""

    def __init__(self, storages: StorageFactory) -> None:
        self._lookups = _Lookups(storages)

    def updates(self, attributes: Attributes) -> bool:
        """Return whether updates of this resource or subresource can change usage. ResourceQuota ignores all others."""
        return (str(attributes.resource.group_resource), attributes.subresource) in _UPDATES

    async def change(self, attributes: Attributes) -> CoreChange | None:
        """Return how the write changes the usage of quotas, or None if it does not.

        The result is None for deletes, because the quota controller subtracts their usage later. It is also None for
        updates of pods that neither set nor remove activeDeadlineSeconds; resizes change the usage.
        """
        resource = attributes.resource.group_resource
        new, old = attributes.object, attributes.old_object if attributes.operation == "UPDATE" else None
        if new is None:
            return None
        if (
            resource == _PODS
            and old is not None
            and not attributes.subresource
            and is_terminating(old) == is_terminating(new)
        ):
            return None
        context = await claim_context(new, self._lookups) if resource == CLAIMS else ALONE
        old_context = await claim_context(old, self._lookups) if resource == CLAIMS and old is not None else ALONE
        used = await offloaded(attributes.large, usage_of, resource, new, context)
        old_used = await offloaded(attributes.large, usage_of, resource, old, old_context) if old else {}
        return CoreChange(resource, new, used, context, old, old_used)


class _Lookups:
    """Reads of device classes, pods and resource claims from the watch caches of this process.

    It implements `ClaimLookups`, for the usage of ResourceClaims.
    """

    def __init__(self, storages: StorageFactory) -> None:
        self._classes = Lister(storages, DEVICE_CLASSES)
        self._pods = Lister(storages, PODS)
        self._claims = Lister(storages, RESOURCE_CLAIMS)

    async def classes(self) -> list[Object]:
        """Return all device classes."""
        return await self._classes.list()

    async def pod(self, namespace: str, name: str) -> Object | None:
        """Return the pod, or None if the cache does not contain it."""
        return await self._pods.get(namespace, name)

    async def claims(self, namespace: str) -> list[Object]:
        """Return all ResourceClaims of the namespace."""
        return await self._claims.list(namespace)
