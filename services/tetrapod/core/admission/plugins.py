"""The admission plugins of core, in upstream's order (upstream: AllOrderedPlugins of pkg/kubeapiserver/options/plugins.go)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tetrapod.core.admission.certificates import CertificateApproval, CertificateSigning, CertificateSubjectRestriction
from tetrapod.core.admission.defaults import DefaultIngressClass, DefaultStorageClass
from tetrapod.core.admission.limit_ranger import LimitRanger
from tetrapod.core.admission.node_restriction import NodeRestriction
from tetrapod.core.admission.pod_resize import NodeDeclaredFeatureValidator, PodResize
from tetrapod.core.admission.pod_security import PodSecurity
from tetrapod.core.admission.priority import Priority
from tetrapod.core.admission.resource_quota import ResourceQuota
from tetrapod.core.admission.runtime_class import RuntimeClass
from tetrapod.core.admission.service_account import ServiceAccount
from tetrapod.core.admission.storage import PersistentVolumeClaimResize, StorageObjectInUseProtection
from tetrapod.core.admission.tolerations import DefaultTolerationSeconds, TaintNodesByCondition
from tetrapod.core.admission.topology_labels import PodTopologyLabels
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.storage.interface import StorageFactory

_Make = Callable[[StorageFactory, Authorizer], Plugin]

ORDERED: Final[dict[str, _Make]] = {
    "NamespaceLifecycle": lambda storages, authorizer: NamespaceLifecycle(storages),
    "LimitRanger": lambda storages, authorizer: LimitRanger(storages),
    "ServiceAccount": lambda storages, authorizer: ServiceAccount(storages),
    "NodeRestriction": lambda storages, authorizer: NodeRestriction(storages),
    "TaintNodesByCondition": lambda storages, authorizer: TaintNodesByCondition(),
    "PodSecurity": lambda storages, authorizer: PodSecurity(storages),
    "Priority": lambda storages, authorizer: Priority(storages),
    "DefaultTolerationSeconds": lambda storages, authorizer: DefaultTolerationSeconds(),
    "DefaultStorageClass": lambda storages, authorizer: DefaultStorageClass(storages),
    "StorageObjectInUseProtection": lambda storages, authorizer: StorageObjectInUseProtection(),
    "PersistentVolumeClaimResize": lambda storages, authorizer: PersistentVolumeClaimResize(storages),
    "RuntimeClass": lambda storages, authorizer: RuntimeClass(storages),
    "CertificateApproval": lambda storages, authorizer: CertificateApproval(authorizer),
    "CertificateSigning": lambda storages, authorizer: CertificateSigning(authorizer),
    "CertificateSubjectRestriction": lambda storages, authorizer: CertificateSubjectRestriction(),
    "DefaultIngressClass": lambda storages, authorizer: DefaultIngressClass(storages),
    "PodTopologyLabels": lambda storages, authorizer: PodTopologyLabels(storages),
    "PodResize": lambda storages, authorizer: PodResize(storages),
    "NodeDeclaredFeatureValidator": lambda storages, authorizer: NodeDeclaredFeatureValidator(storages),
    "ResourceQuota": lambda storages, authorizer: ResourceQuota(storages),  # last: it charges what all others let through
}
OFF_BY_DEFAULT: Final = frozenset({"NodeRestriction"})


def plugins(storages: StorageFactory, authorizer: Authorizer, enabled: Sequence[str], disabled: Sequence[str]) -> list[Plugin]:
    """Those that are on by default or turned on, but not turned off. Names that upstream knows and we lack are passed over."""
    wanted = (ORDERED.keys() - OFF_BY_DEFAULT | set(enabled)) - set(disabled)
    return [make(storages, authorizer) for name, make in ORDERED.items() if name in wanted]
