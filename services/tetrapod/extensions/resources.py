"""The built-in resources of this service: apiextensions.k8s.io/v1."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.extensions.definitions.store import CrdStore
from tetrapod.extensions.definitions.strategy import CrdStatusStrategy, CrdStrategy
from tetrapod.extensions.tables import CUSTOM_RESOURCE_DEFINITIONS
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.crd_versions import to_v1, to_v1beta1
from tetrapod.machinery.gvk import GroupVersionResource

GROUP = "apiextensions.k8s.io"
CRDS = GroupVersionResource(GROUP, "v1", "customresourcedefinitions")
STORAGE = StorageConfig(
    f"{GROUP}/customresourcedefinitions",
    f"{GROUP}/v1",
    "CustomResourceDefinition",
    namespaced=False,
    compressed=True,
    from_store=to_v1,
    to_store=to_v1beta1,
)


def definitions() -> list[ResourceDefinition]:
    """Return the resource definitions of apiextensions.k8s.io/v1."""
    declared = builtin(
        GROUP,
        "customresourcedefinitions",
        CrdStrategy(),
        storage_prefix=STORAGE.prefix,
        table=CUSTOM_RESOURCE_DEFINITIONS,
        subresources={"status": CrdStatusStrategy()},
    )
    return [replace(declared, store=CrdStore)]
