"""StorageObjectInUseProtection, PodGroupProtection and PersistentVolumeClaimResize.

Upstream: plugin/pkg/admission/storage/{storageobjectinuseprotection,persistentvolume/resize} and
scheduling/podgroupprotection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tetrapod.core.admission.kinds import STORAGE_CLASSES
from tetrapod.core.admission.pod_plugin import object_of
from tetrapod.core.podspec.claim_spec import ATTRIBUTES_GATE
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
ATTRIBUTES_PROTECTION: Final = "kubernetes.io/vac-protection"
POD_GROUP_PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
_ONLY_DYNAMIC: Final = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


class _InUseProtection(Plugin):
    """The base class of plugins that add a finalizer to new objects, which keeps them while others use them.

    Attributes:
        finalizers: the finalizer for each (group, resource).
    """

    operations = frozenset({"CREATE"})
    finalizers: Mapping[tuple[str, str], str]

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return (group, resource) in self.finalizers and not attributes.subresource

    async def admit(self, attributes: Attributes) -> None:
        group, _, resource = attributes.resource
        meta, finalizer = object_of(attributes)["metadata"], self.finalizers[group, resource]
        if finalizer not in (meta.get("finalizers") or ()):
            meta["finalizers"] = [*(meta.get("finalizers") or ()), finalizer]


class StorageObjectInUseProtection(_InUseProtection):
    """The plugin that adds a finalizer to new claims, volumes and VolumeAttributesClasses.

    The protection controllers remove it: `controllers/protection.py` from claims and volumes, kube-controller-manager
    from VolumeAttributesClasses.
    """

    name = "StorageObjectInUseProtection"
    finalizers = {
        ("", "persistentvolumeclaims"): CLAIM_PROTECTION,
        ("", "persistentvolumes"): VOLUME_PROTECTION,
        ("storage.k8s.io", "volumeattributesclasses"): ATTRIBUTES_PROTECTION,
    }

    def handles(self, attributes: Attributes) -> bool:
        gated = attributes.resource.resource == "volumeattributesclasses"
        return super().handles(attributes) and (not gated or feature_gates.enabled(ATTRIBUTES_GATE))


class PodGroupProtection(_InUseProtection):
    """The plugin that adds a finalizer to new PodGroups, which `controllers/protection.py` removes."""

    name = "PodGroupProtection"
    finalizers = {("scheduling.k8s.io", "podgroups"): POD_GROUP_PROTECTION}

    def handles(self, attributes: Attributes) -> bool:
        return super().handles(attributes) and feature_gates.enabled("GenericWorkload")


class PersistentVolumeClaimResize(Plugin):
    """The plugin that rejects larger storage requests of claims that are unbound or whose class forbids expansion."""

    name = "PersistentVolumeClaimResize"
    operations = frozenset({"UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._classes = Lister(storages, STORAGE_CLASSES)

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return resource == "persistentvolumeclaims" and not group and not attributes.subresource

    async def validate(self, attributes: Attributes) -> None:
        new, old = object_of(attributes), attributes.old_object or {}
        if _size(new) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise forbidden(attributes, "Only bound persistent volume claims can be expanded")
        name = (new.get("spec") or {}).get("storageClassName") or ""
        storage_class = await self._classes.get("", name) if name else None
        if storage_class is None or not storage_class.get("allowVolumeExpansion"):
            raise forbidden(attributes, _ONLY_DYNAMIC)


def _size(claim: Object) -> Quantity:
    return Quantity.of((((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage"))
