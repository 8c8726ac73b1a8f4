"""The admission plugins of core, in upstream's order.

Upstream: pkg/kubeapiserver/options/plugins.go, AllOrderedPlugins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tetrapod.core.admission.antiaffinity_and_external_ips import (
    DenyServiceExternalIPs,
    LimitPodHardAntiAffinityTopology,
)
from tetrapod.core.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    ClusterTrustBundleAttest,
)
from tetrapod.core.admission.configurable import (
    event_rate_limit,
    image_policy_webhook,
    pod_node_selector,
    pod_security,
    pod_toleration_restriction,
    resource_quota,
)
from tetrapod.core.admission.declared_features import NodeDeclaredFeatureValidator
from tetrapod.core.admission.defaults import DefaultIngressClass, DefaultStorageClass
from tetrapod.core.admission.images import AlwaysPullImages
from tetrapod.core.admission.limit_ranger import LimitRanger
from tetrapod.core.admission.node_restriction import NodeRestriction
from tetrapod.core.admission.pod_resize import PodResizeValidator
from tetrapod.core.admission.priority import Priority
from tetrapod.core.admission.runtime_class import RuntimeClass
from tetrapod.core.admission.service_account import ServiceAccount
from tetrapod.core.admission.storage import (
    PersistentVolumeClaimResize,
    PodGroupProtection,
    StorageObjectInUseProtection,
)
from tetrapod.core.admission.tolerations import (
    DefaultTolerationSeconds,
    ExtendedResourceToleration,
    TaintNodesByCondition,
)
from tetrapod.core.admission.topology_labels import PodTopologyLabels
from tetrapod.generic.admission.generic_plugins import DYNAMIC, GENERAL, GENERAL_OFF_BY_DEFAULT, Make, select_plugins
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.machinery.golang.quoting import go_quote

ORDERED: Final[dict[str, Make]] = {
    "NamespaceAutoProvision": GENERAL["NamespaceAutoProvision"],
    "NamespaceLifecycle": GENERAL["NamespaceLifecycle"],
    "NamespaceExists": GENERAL["NamespaceExists"],
    "LimitPodHardAntiAffinityTopology": lambda s: LimitPodHardAntiAffinityTopology(),
    "LimitRanger": lambda s: LimitRanger(s.storages),
    "ServiceAccount": lambda s: ServiceAccount(s.storages),
    "NodeRestriction": lambda s: NodeRestriction(s.storages, s.authorizer),
    "TaintNodesByCondition": lambda s: TaintNodesByCondition(),
    "AlwaysPullImages": lambda s: AlwaysPullImages(),
    "ImagePolicyWebhook": image_policy_webhook,
    "PodSecurity": pod_security,
    "PodNodeSelector": pod_node_selector,
    "Priority": lambda s: Priority(s.storages),
    "DefaultTolerationSeconds": lambda s: DefaultTolerationSeconds(*s.toleration_seconds),
    "PodTolerationRestriction": pod_toleration_restriction,
    "EventRateLimit": event_rate_limit,
    "ExtendedResourceToleration": lambda s: ExtendedResourceToleration(),
    "DefaultStorageClass": lambda s: DefaultStorageClass(s.storages),
    "StorageObjectInUseProtection": lambda s: StorageObjectInUseProtection(),
    "PodGroupProtection": lambda s: PodGroupProtection(),
    "OwnerReferencesPermissionEnforcement": GENERAL["OwnerReferencesPermissionEnforcement"],
    "PersistentVolumeClaimResize": lambda s: PersistentVolumeClaimResize(s.storages),
    "RuntimeClass": lambda s: RuntimeClass(s.storages),
    "CertificateApproval": lambda s: CertificateApproval(s.authorizer),
    "CertificateSigning": lambda s: CertificateSigning(s.authorizer),
    "ClusterTrustBundleAttest": lambda s: ClusterTrustBundleAttest(s.authorizer),
    "CertificateSubjectRestriction": lambda s: CertificateSubjectRestriction(),
    "DefaultIngressClass": lambda s: DefaultIngressClass(s.storages),
    "DenyServiceExternalIPs": lambda s: DenyServiceExternalIPs(),
    "PodTopologyLabels": lambda s: PodTopologyLabels(s.storages),
    "NodeDeclaredFeatureValidator": lambda s: NodeDeclaredFeatureValidator(s.storages),
    "PodResizeValidator": lambda s: PodResizeValidator(s.storages),
    **DYNAMIC,
    "ResourceQuota": resource_quota,  # last, because it charges only what all other plugins admit
    "AlwaysDeny": GENERAL["AlwaysDeny"],
}
OFF_BY_DEFAULT: Final = GENERAL_OFF_BY_DEFAULT | frozenset(
    {
        "AlwaysPullImages",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "LimitPodHardAntiAffinityTopology",
        "NodeRestriction",
        "PodNodeSelector",
        "PodTolerationRestriction",
    }
)
WITHOUT_EFFECT: Final = frozenset({"AlwaysAdmit"})
"""Plugins of upstream that do nothing."""


def plugins(dependencies: PluginDependencies, enabled: Sequence[str], disabled: Sequence[str]) -> list[Plugin]:
    """Create the plugins that are enabled by default or by flag and not disabled, in the order of `ORDERED`.

    Args:
        dependencies: the objects that plugins use.
        enabled: the value of --enable-admission-plugins.
        disabled: the value of --disable-admission-plugins.

    Raises:
        UnusablePlugins: the configuration of a plugin is invalid.
    """
    return select_plugins(ORDERED, OFF_BY_DEFAULT, dependencies, enabled, disabled)


def plugin_flag_errors(enabled: Sequence[str], disabled: Sequence[str]) -> list[str]:
    """Return errors for unknown and contradictory plugin names in the flags, with upstream's texts; [] without errors.

    An unknown name is an error, so that a plugin that should protect the cluster is never missing without notice.

    Args:
        enabled: the value of --enable-admission-plugins.
        disabled: the value of --disable-admission-plugins.
    """
    known = ORDERED.keys() | WITHOUT_EFFECT
    flags = (("enable", enabled), ("disable", disabled))
    errors = [
        f"{flag}-admission-plugins plugin {go_quote(name)} is unknown"
        for flag, names in flags
        for name in names
        if name not in known
    ]
    if overlapping := sorted(set(enabled) & set(disabled)):
        errors.append(f"[{' '.join(overlapping)}] in enable-admission-plugins and disable-admission-plugins overlapped")
    return errors
