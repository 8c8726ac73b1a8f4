"""The admission plugins of core, in upstream's order (upstream: AllOrderedPlugins of pkg/kubeapiserver/options/plugins.go)."""

from __future__ import annotations

from collections.abc import Sequence
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
from tetrapod.generic.admission.dynamic import DYNAMIC, Make
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from tetrapod.generic.admission.surroundings import Surroundings

ORDERED: Final[dict[str, Make]] = {
    "NamespaceLifecycle": lambda s: NamespaceLifecycle(s.storages),
    "LimitRanger": lambda s: LimitRanger(s.storages),
    "ServiceAccount": lambda s: ServiceAccount(s.storages),
    "NodeRestriction": lambda s: NodeRestriction(s.storages),
    "TaintNodesByCondition": lambda s: TaintNodesByCondition(),
    "PodSecurity": lambda s: PodSecurity(s.storages),
    "Priority": lambda s: Priority(s.storages),
    "DefaultTolerationSeconds": lambda s: DefaultTolerationSeconds(*s.toleration_seconds),
    "DefaultStorageClass": lambda s: DefaultStorageClass(s.storages),
    "StorageObjectInUseProtection": lambda s: StorageObjectInUseProtection(),
    "PersistentVolumeClaimResize": lambda s: PersistentVolumeClaimResize(s.storages),
    "RuntimeClass": lambda s: RuntimeClass(s.storages),
    "CertificateApproval": lambda s: CertificateApproval(s.authorizer),
    "CertificateSigning": lambda s: CertificateSigning(s.authorizer),
    "CertificateSubjectRestriction": lambda s: CertificateSubjectRestriction(),
    "DefaultIngressClass": lambda s: DefaultIngressClass(s.storages),
    "PodTopologyLabels": lambda s: PodTopologyLabels(s.storages),
    "PodResize": lambda s: PodResize(s.storages),
    "NodeDeclaredFeatureValidator": lambda s: NodeDeclaredFeatureValidator(s.storages),
    **DYNAMIC,
    "ResourceQuota": lambda s: ResourceQuota(s.storages),  # last: it charges what all others let through
}
OFF_BY_DEFAULT: Final = frozenset({"NodeRestriction"})


def plugins(surroundings: Surroundings, enabled: Sequence[str], disabled: Sequence[str]) -> list[Plugin]:
    """Those that are on by default or turned on, but not turned off. Names that upstream knows and we lack are passed over."""
    wanted = (ORDERED.keys() - OFF_BY_DEFAULT | set(enabled)) - set(disabled)
    return [make(surroundings) for name, make in ORDERED.items() if name in wanted]
