"""Storage configurations of the kinds that admission plugins read."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.storage.config import StorageConfig

NAMESPACES: Final = StorageConfig("namespaces", "v1", "Namespace", namespaced=False)
NODES: Final = StorageConfig("minions", "v1", "Node", namespaced=False)
PODS: Final = StorageConfig("pods", "v1", "Pod")
SERVICE_ACCOUNTS: Final = StorageConfig("serviceaccounts", "v1", "ServiceAccount")
LIMIT_RANGES: Final = StorageConfig("limitranges", "v1", "LimitRange")
PERSISTENT_VOLUMES: Final = StorageConfig("persistentvolumes", "v1", "PersistentVolume", namespaced=False)
CLAIMS: Final = StorageConfig("persistentvolumeclaims", "v1", "PersistentVolumeClaim")
PRIORITY_CLASSES: Final = StorageConfig("priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", namespaced=False)
RUNTIME_CLASSES: Final = StorageConfig("runtimeclasses", "node.k8s.io/v1", "RuntimeClass", namespaced=False)
STORAGE_CLASSES: Final = StorageConfig("storageclasses", "storage.k8s.io/v1", "StorageClass", namespaced=False)
CSI_DRIVERS: Final = StorageConfig("csidrivers", "storage.k8s.io/v1", "CSIDriver", namespaced=False)
INGRESS_CLASSES: Final = StorageConfig("ingressclasses", "networking.k8s.io/v1", "IngressClass", namespaced=False)
DEVICE_CLASSES: Final = StorageConfig("deviceclasses", "resource.k8s.io/v1", "DeviceClass", namespaced=False)
RESOURCE_CLAIMS: Final = StorageConfig("resourceclaims", "resource.k8s.io/v1", "ResourceClaim")
