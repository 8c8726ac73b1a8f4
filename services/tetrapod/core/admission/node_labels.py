"""The labels that a kubelet may set on its node.

Upstream: pkg/apis/core/v1/kubelet labels; plugin/pkg/admission/noderestriction, getModifiedLabels.
"""

from __future__ import annotations

from typing import Final

_KUBELET: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_KUBELET_NAMESPACES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED: Final = "node-restriction.kubernetes.io"
_KUBERNETES: Final = ("kubernetes.io", "k8s.io")


def _within(namespace: str, parent: str) -> bool:
    return namespace == parent or namespace.endswith("." + parent)


def restricted(label: str) -> bool:
    """Return whether only administrators may set the label, in the domain node-restriction.kubernetes.io."""
    return _within(label.partition("/")[0], _RESTRICTED) if "/" in label else False


def may_be_set_by_kubelet(label: str) -> bool:
    """Return whether a kubelet may set the label on its own node.

    Allowed are the labels that kubelets report, such as the zone, and labels outside of kubernetes.io and k8s.io.
    """
    if label in _KUBELET:
        return True
    namespace = label.partition("/")[0] if "/" in label else ""
    if any(_within(namespace, parent) for parent in _KUBELET_NAMESPACES):
        return True
    return not any(_within(namespace, parent) for parent in _KUBERNETES)
