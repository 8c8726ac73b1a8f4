"""The admission plugins of core, in upstream's order (upstream: AllOrderedPlugins of pkg/kubeapiserver/options/plugins.go)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tetrapod.core.admission.defaults import DefaultIngressClass, DefaultStorageClass
from tetrapod.core.admission.limit_ranger import LimitRanger
from tetrapod.core.admission.node_restriction import NodeRestriction
from tetrapod.core.admission.pod_security import PodSecurity
from tetrapod.core.admission.priority import Priority
from tetrapod.core.admission.resource_quota import ResourceQuota
from tetrapod.core.admission.runtime_class import RuntimeClass
from tetrapod.core.admission.service_account import ServiceAccount
from tetrapod.core.admission.storage import PersistentVolumeClaimResize, StorageObjectInUseProtection
from tetrapod.core.admission.tolerations import DefaultTolerationSeconds, TaintNodesByCondition
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from tetrapod.generic.client.interface import Client
from tetrapod.generic.storage.interface import StorageFactory

_Make = Callable[[StorageFactory, Client], Plugin]

ORDERED: Final[dict[str, _Make]] = {
    "NamespaceLifecycle": lambda storages, client: NamespaceLifecycle(storages),
    "LimitRanger": lambda storages, client: LimitRanger(storages),
    "ServiceAccount": lambda storages, client: ServiceAccount(storages),
    "NodeRestriction": lambda storages, client: NodeRestriction(storages),
    "TaintNodesByCondition": lambda storages, client: TaintNodesByCondition(),
    "PodSecurity": lambda storages, client: PodSecurity(storages),
    "Priority": lambda storages, client: Priority(storages),
    "DefaultTolerationSeconds": lambda storages, client: DefaultTolerationSeconds(),
    "DefaultStorageClass": lambda storages, client: DefaultStorageClass(storages),
    "StorageObjectInUseProtection": lambda storages, client: StorageObjectInUseProtection(),
    "PersistentVolumeClaimResize": lambda storages, client: PersistentVolumeClaimResize(storages),
    "RuntimeClass": lambda storages, client: RuntimeClass(storages),
    "DefaultIngressClass": lambda storages, client: DefaultIngressClass(storages),
    "ResourceQuota": lambda storages, client: ResourceQuota(storages),  # last: it charges what all others let through
}
OFF_BY_DEFAULT: Final = frozenset({"NodeRestriction"})


def plugins(storages: StorageFactory, client: Client, enabled: Sequence[str], disabled: Sequence[str]) -> list[Plugin]:
    """Those that are on by default or turned on, but not turned off. Names that upstream knows and we lack are passed over."""
    wanted = (ORDERED.keys() - OFF_BY_DEFAULT | set(enabled)) - set(disabled)
    return [make(storages, client) for name, make in ORDERED.items() if name in wanted]
