"""The kinds in upstream's schemes (runtime.Scheme) by group-version, for error texts.

The decoder distinguishes unknown kinds, known kinds that are not the expected one, and the right kind in another
version.
Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/scheme.go, converter.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tetrapod.machinery.go_packages import OWN_SCHEMES, go_package
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types.definitions import kinds_of, schema_for

SCHEME: Final = 'scheme "pkg/runtime/scheme.go:111"'

_EVERYWHERE: Final = frozenset(
    {"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"}
)
_UNVERSIONED: Final = frozenset({"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"})
"""Kinds of meta that are registered in `v1`."""

_WORKLOADS: Final = frozenset({"ControllerRevision", "Deployment", "StatefulSet", "Scale"})
_FORMER: Final[Mapping[str, frozenset[str]]] = {
    "apps/v1beta1": _WORKLOADS | {"DeploymentRollback"},
    "apps/v1beta2": _WORKLOADS | {"DaemonSet", "ReplicaSet"},
    "extensions/v1beta1": frozenset(
        {"DaemonSet", "Deployment", "DeploymentRollback", "Ingress", "NetworkPolicy", "ReplicaSet", "Scale"}
    ),
    "autoscaling/v2beta1": frozenset({"HorizontalPodAutoscaler"}),
    "autoscaling/v2beta2": frozenset({"HorizontalPodAutoscaler"}),
    "batch/v1beta1": frozenset({"CronJob"}),
    "policy/v1beta1": frozenset({"Eviction", "PodDisruptionBudget"}),
    "networking.k8s.io/v1beta1": frozenset({"Ingress", "IngressClass", "IPAddress", "ServiceCIDR"}),
    "rbac.authorization.k8s.io/v1beta1": frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
    "rbac.authorization.k8s.io/v1alpha1": frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
    "scheduling.k8s.io/v1beta1": frozenset({"PriorityClass"}),
    "storage.k8s.io/v1beta1": frozenset(
        {"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"}
    ),
    "coordination.k8s.io/v1beta1": frozenset({"Lease"}),
    "discovery.k8s.io/v1beta1": frozenset({"EndpointSlice"}),
    "events.k8s.io/v1beta1": frozenset({"Event"}),
    "node.k8s.io/v1beta1": frozenset({"RuntimeClass"}),
    "certificates.k8s.io/v1beta1": frozenset({"CertificateSigningRequest"}),
    "admissionregistration.k8s.io/v1beta1": frozenset(
        {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
    ),
    "apiregistration.k8s.io/v1beta1": frozenset({"APIService"}),
    "authentication.k8s.io/v1alpha1": frozenset({"SelfSubjectReview"}),
    "authentication.k8s.io/v1beta1": frozenset({"SelfSubjectReview", "TokenReview"}),
    "authorization.k8s.io/v1beta1": frozenset(
        {"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"}
    ),
    "apiextensions.k8s.io/v1beta1": frozenset({"CustomResourceDefinition"}),
    "flowcontrol.apiserver.k8s.io/v1beta3": frozenset({"FlowSchema", "PriorityLevelConfiguration"}),
}
"""Versions that are still decoded, although they are no longer served."""
_AS_V1: Final = frozenset(
    {
        *("apps/v1beta1", "apps/v1beta2", "batch/v1beta1", "policy/v1beta1", "coordination.k8s.io/v1beta1"),
        *("rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1alpha1", "scheduling.k8s.io/v1beta1"),
        *("storage.k8s.io/v1beta1", "events.k8s.io/v1beta1", "admissionregistration.k8s.io/v1beta1"),
        *("apiregistration.k8s.io/v1beta1", "authentication.k8s.io/v1beta1", "authorization.k8s.io/v1beta1"),
        "flowcontrol.apiserver.k8s.io/v1beta3",
    }
)
"""Former versions whose kinds have the fields that they have in v1."""


def _scheme_of(group: str) -> str:
    return group if group in OWN_SCHEMES else ""


def is_registered(api_version: str, kind: str, group: str) -> bool:
    """Return whether upstream registers the kind in the scheme with which it decodes objects of `group`.

    apiextensions.k8s.io and apiregistration.k8s.io have a scheme each; all other groups share one.
    """
    same_scheme = _scheme_of(GroupVersion.parse(api_version).group) == _scheme_of(group)
    kinds = kinds_of(api_version) if same_scheme else ()
    former = _FORMER.get(api_version, frozenset()) if same_scheme else frozenset()
    single = kind.removesuffix("List")
    if kind in kinds or single in kinds or kind in former or single in former:
        return True
    if api_version == "v1" and (kind in _UNVERSIONED or kind == "List"):
        return True
    return kind in _EVERYWHERE and (bool(kinds) or bool(former) or api_version == "v1")


def not_registered(api_version: str, kind: str) -> str:
    """Return the error text for a kind that is in no scheme."""
    return f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in {SCHEME}"


def is_registered_internally(api_version: str, kind: str) -> bool:
    """Return whether upstream registers the kind in the internal version of the group of `api_version`."""
    kinds = kinds_of(api_version)
    return kind not in _EVERYWHERE and (kind in kinds or kind.removesuffix("List") in (*kinds, ""))


def not_registered_internally(group: str, kind: str) -> str:
    """Return the error text for a kind without a version that the group does not have."""
    return f"no kind {go_quote(kind)} is registered for the internal version of group {go_quote(group)} in {SCHEME}"


def unknown_conversion(version: str, kind: str, group: str, expected: str) -> str:
    """Return the error text for a kind that is not the expected one and cannot be converted to it.

    Args:
        version: the version of the rejected kind without its group, such as "v1".
        kind: the rejected kind.
        group: the API group of the expected kind.
        expected: the expected kind.

    Returns:
        A text such as "converting (v1.Pod) to (core.ConfigMap): unknown conversion".
    """
    return f"converting ({version}.{kind}) to ({go_package(group)}.{expected}): unknown conversion"


def structure_of(gvk: GroupVersionKind) -> SchemaNode | None:
    """Return the schema of a built-in kind, or None if it is unknown, as those of some former versions are."""
    if gvk.api_version in _AS_V1:
        gvk = GroupVersionKind(gvk.group, "v1", gvk.kind)
    try:
        return schema_for(gvk)
    except KeyError:
        return None


def same_family(group_version: GroupVersion, group: str, kind: str) -> bool:
    """Return whether objects of `kind` in `group_version` can be converted to the same kind in `group`."""
    if kind == "Scale":
        return group_version.group in (group, "extensions", "apps")
    if kind == "Event":
        return group_version.group in (group, "", "events.k8s.io")
    return group_version.group == group or (
        group_version.group == "extensions" and group in ("apps", "networking.k8s.io", "policy")
    )
