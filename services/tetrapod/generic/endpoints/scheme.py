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
from tetrapod.machinery.types.definitions import api_versions, kinds_of, schema_for

SCHEME: Final = 'scheme "pkg/runtime/scheme.go:111"'

_WATCH_EVENT: Final = "WatchEvent"
_EVERYWHERE: Final = frozenset(
    {"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", _WATCH_EVENT}
)
"""Kinds of meta that every known group-version has."""
_UNVERSIONED: Final = frozenset({"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"})
"""Kinds of meta that objects of every apiVersion may have, also of unknown ones."""
_META: Final = frozenset({"PartialObjectMetadata", "PartialObjectMetadataList", "Table", "TableOptions"})
META_GROUP: Final = "meta.k8s.io"
INTERNAL: Final = "__internal"
"""The version of the internal types."""
_OF_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    f"{META_GROUP}/v1": _EVERYWHERE | _META,
    f"{META_GROUP}/v1beta1": _META,
    f"{META_GROUP}/{INTERNAL}": _EVERYWHERE - {"PatchOptions"} | _META,
}
"""The kinds in the scheme with which upstream decodes the bodies of deletions."""
_OPTIONS_OF_ANY_VERSION: Final = frozenset({"CreateOptions", "DeleteOptions", "UpdateOptions"})

_WORKLOADS: Final = frozenset({"ControllerRevision", "Deployment", "StatefulSet", "Scale"})
_POLICIES: Final = frozenset({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
_WEBHOOKS: Final = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
_FLOWS: Final = frozenset({"FlowSchema", "PriorityLevelConfiguration"})
_UNSERVED: Final[Mapping[str, frozenset[str]]] = {
    "v1": frozenset(
        {
            *("List", "NodeProxyOptions", "PodAttachOptions", "PodExecOptions", "PodLogOptions"),
            *("PodPortForwardOptions", "PodProxyOptions", "RangeAllocation", "SerializedReference"),
            "ServiceProxyOptions",
        }
    ),
    "admission.k8s.io/v1": frozenset({"AdmissionReview"}),
    "admission.k8s.io/v1beta1": frozenset({"AdmissionReview"}),
    "imagepolicy.k8s.io/v1alpha1": frozenset({"ImageReview"}),
    "apps/v1beta1": _WORKLOADS | {"DeploymentRollback"},
    "apps/v1beta2": _WORKLOADS | {"DaemonSet", "ReplicaSet"},
    "extensions/v1beta1": frozenset(
        {"DaemonSet", "Deployment", "DeploymentRollback", "Ingress", "NetworkPolicy", "ReplicaSet", "Scale"}
    ),
    "batch/v1beta1": frozenset({"CronJob"}),
    "policy/v1beta1": frozenset({"Eviction", "PodDisruptionBudget"}),
    "networking.k8s.io/v1beta1": frozenset({"Ingress", "IngressClass", "IPAddress", "ServiceCIDR"}),
    "rbac.authorization.k8s.io/v1beta1": frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
    "rbac.authorization.k8s.io/v1alpha1": frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
    "scheduling.k8s.io/v1beta1": frozenset({"PriorityClass"}),
    "storage.k8s.io/v1beta1": frozenset(
        {"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"}
    ),
    "storage.k8s.io/v1alpha1": frozenset({"CSIStorageCapacity", "VolumeAttachment", "VolumeAttributesClass"}),
    "coordination.k8s.io/v1beta1": frozenset({"Lease"}),
    "discovery.k8s.io/v1beta1": frozenset({"EndpointSlice"}),
    "events.k8s.io/v1beta1": frozenset({"Event"}),
    "node.k8s.io/v1beta1": frozenset({"RuntimeClass"}),
    "node.k8s.io/v1alpha1": frozenset({"RuntimeClass"}),
    "certificates.k8s.io/v1beta1": frozenset({"CertificateSigningRequest"}),
    "certificates.k8s.io/v1alpha1": frozenset({"ClusterTrustBundle"}),
    "admissionregistration.k8s.io/v1beta1": _POLICIES | _WEBHOOKS,
    "admissionregistration.k8s.io/v1alpha1": _POLICIES,
    "apiregistration.k8s.io/v1beta1": frozenset({"APIService"}),
    "authentication.k8s.io/v1alpha1": frozenset({"SelfSubjectReview"}),
    "authentication.k8s.io/v1beta1": frozenset({"SelfSubjectReview", "TokenReview"}),
    "authorization.k8s.io/v1beta1": frozenset(
        {"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"}
    ),
    "apiextensions.k8s.io/v1beta1": frozenset({"CustomResourceDefinition"}),
    "flowcontrol.apiserver.k8s.io/v1beta1": _FLOWS,
    "flowcontrol.apiserver.k8s.io/v1beta2": _FLOWS,
    "flowcontrol.apiserver.k8s.io/v1beta3": _FLOWS,
}
"""Kinds that are decoded by apiVersion, although they are not served. Most are those of former versions."""
_WITHOUT_LIST: Final = frozenset(
    {
        *("AdmissionReview", "DeploymentRollback", "Eviction", "ImageReview", "LocalSubjectAccessReview", "Scale"),
        *("SelfSubjectAccessReview", "SelfSubjectReview", "SelfSubjectRulesReview", "SubjectAccessReview"),
        *("TokenReview", *_UNSERVED["v1"]),
    }
)
"""Those without a kind for lists."""
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
    if kind in _UNVERSIONED:
        return True
    group_of_kind, version = GroupVersion.parse(api_version)
    if _scheme_of(group_of_kind) != _scheme_of(group):
        return False
    if version == INTERNAL:
        return is_registered_internally(group_of_kind, kind)
    if kind in _EVERYWHERE:
        return bool(kinds_of(api_version)) or api_version in _UNSERVED
    return _has_kind(api_version, kind)


def _has_kind(api_version: str, kind: str) -> bool:
    unserved = _UNSERVED.get(api_version, frozenset())
    single = kind.removesuffix("List")
    return kind in kinds_of(api_version) or kind in unserved or single in unserved - _WITHOUT_LIST


def not_registered(api_version: str, kind: str) -> str:
    """Return the error text for a kind that is in no scheme."""
    group, version = GroupVersion.parse(api_version)
    if version == INTERNAL:
        return not_registered_internally(group, kind)
    return f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in {SCHEME}"


def is_kind_of_options(gvk: GroupVersionKind) -> bool:
    """Return whether upstream registers the kind in the scheme with which it decodes the bodies of deletions.

    Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion/register.go
    """
    if gvk.kind in _UNVERSIONED or gvk.kind in _OPTIONS_OF_ANY_VERSION:
        return True
    return gvk.kind in _OF_OPTIONS.get(gvk.api_version, ())


def options_error(gvk: GroupVersionKind) -> str:
    """Return the error text for the body of a deletion of another kind than DeleteOptions."""
    if not is_kind_of_options(gvk):
        return not_registered(gvk.api_version, gvk.kind)
    package = "internalversion" if gvk.version == INTERNAL and gvk.kind == "ListOptions" else "v1"
    return f"converting ({package}.{gvk.kind}) to (v1.DeleteOptions): unknown conversion"


def is_registered_internally(group: str, kind: str) -> bool:
    """Return whether upstream registers the kind in the internal version of a group."""
    if kind in _UNVERSIONED or kind in _EVERYWHERE:
        return kind in _UNVERSIONED or kind == _WATCH_EVENT
    return any(
        _has_kind(api_version, kind)
        for api_version in (*api_versions(), *_UNSERVED)
        if GroupVersion.parse(api_version).group == group
    )


def not_registered_internally(group: str, kind: str) -> str:
    """Return the error text for a kind without a version that the group does not have."""
    return f"no kind {go_quote(kind)} is registered for the internal version of group {go_quote(group)} in {SCHEME}"


def unknown_conversion(gvk: GroupVersionKind, group: str, expected: str) -> str:
    """Return the error text for a kind that is not the expected one and cannot be converted to it.

    Args:
        gvk: the rejected kind.
        group: the API group of the expected kind.
        expected: the expected kind.

    Returns:
        A text such as "converting (v1.Pod) to (core.ConfigMap): unknown conversion".
    """
    return f"converting ({_go_type(gvk)}) to ({go_package(group)}.{expected}): unknown conversion"


def _go_type(gvk: GroupVersionKind) -> str:
    """Return the Go type of a kind with the last part of its package, such as "v1.Pod"."""
    if gvk.kind in _UNVERSIONED or gvk.kind in _EVERYWHERE:
        return "v1.InternalEvent" if gvk.version == INTERNAL and gvk.kind == _WATCH_EVENT else f"v1.{gvk.kind}"
    return f"{go_package(gvk.group) if gvk.version == INTERNAL else gvk.version}.{gvk.kind}"


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
