"""The storage of RBAC objects. The auth service owns them; every service watches their keys."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.storage.config import StorageConfig

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
RBAC_VERSION: Final = f"{RBAC_GROUP}/v1"

ROLES: Final = StorageConfig(prefix="roles", api_version=RBAC_VERSION, kind="Role")
ROLE_BINDINGS: Final = StorageConfig(prefix="rolebindings", api_version=RBAC_VERSION, kind="RoleBinding")
CLUSTER_ROLES: Final = StorageConfig(
    prefix="clusterroles", api_version=RBAC_VERSION, kind="ClusterRole", namespaced=False
)
CLUSTER_ROLE_BINDINGS: Final = StorageConfig(
    prefix="clusterrolebindings", api_version=RBAC_VERSION, kind="ClusterRoleBinding", namespaced=False
)
RBAC_STORAGES: Final = (ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
