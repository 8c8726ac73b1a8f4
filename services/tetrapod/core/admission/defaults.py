"""DefaultStorageClass and DefaultIngressClass, which set the default class of claims and ingresses without one.

Upstream: plugin/pkg/admission/storage, plugin/pkg/admission/network.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.kinds import INGRESS_CLASSES, STORAGE_CLASSES
from tetrapod.core.admission.pod_plugin import object_of, spec_of
from tetrapod.core.podspec.claim_spec import BETA_CLASS
from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import Object

_STORAGE_DEFAULTS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_INGRESS_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"
_INGRESS_ANNOTATION: Final = "kubernetes.io/ingress.class"


def _marked(obj: Object, *annotations: str) -> bool:
    """Return whether at least one of the annotations has the value "true"."""
    values = obj["metadata"].get("annotations") or {}
    return any(values.get(name) == "true" for name in annotations)


def _newest(classes: list[Object]) -> Object | None:
    """Return the most recently created class, or None if the list is empty.

    If several classes have that creationTimestamp, return the first one by name.
    """
    by_name = sorted(classes, key=lambda c: c["metadata"]["name"])
    return max(by_name, key=lambda c: c["metadata"].get("creationTimestamp") or "", default=None)


class DefaultStorageClass(Plugin):
    """The plugin that sets spec.storageClassName of new PersistentVolumeClaims without a class.

    It sets the most recently created class that an annotation marks as default. Without such a class it does nothing.
    """

    name = "DefaultStorageClass"
    operations = frozenset({"CREATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._classes = Lister(storages, STORAGE_CLASSES)

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return resource == "persistentvolumeclaims" and not group and not attributes.subresource

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        if spec.get("storageClassName") is not None or BETA_CLASS in (
            object_of(attributes)["metadata"].get("annotations") or {}
        ):
            return
        default = _newest([c for c in await self._classes.list() if _marked(c, *_STORAGE_DEFAULTS)])
        if default is not None:
            spec["storageClassName"] = default["metadata"]["name"]


class DefaultIngressClass(Plugin):
    """The plugin that sets spec.ingressClassName of new Ingresses without a class.

    It sets the most recently created class that an annotation marks as default. Without such a class it does nothing.
    """

    name = "DefaultIngressClass"
    operations = frozenset({"CREATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._classes = Lister(storages, INGRESS_CLASSES)

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return resource == "ingresses" and group == "networking.k8s.io" and not attributes.subresource

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        annotated = _INGRESS_ANNOTATION in (object_of(attributes)["metadata"].get("annotations") or {})
        if spec.get("ingressClassName") is not None or annotated:
            return
        default = _newest([c for c in await self._classes.list() if _marked(c, _INGRESS_DEFAULT)])
        if default is not None:
            spec["ingressClassName"] = default["metadata"]["name"]
