"""The selection of controllers by `--controllers`, with upstream's names.

Upstream: IsControllerEnabled in k8s.io/controller-manager/app/helper.go, options/generic.go there, and the names and
former names in cmd/kube-controller-manager. Names of controllers that do not exist here are accepted, so that
upstream's command lines work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

OFF_BY_DEFAULT: Final = frozenset(
    {
        "bootstrap-signer-controller",
        "token-cleaner-controller",
        "selinux-warning-controller",
        # Upstream enables these by default, for a controller manager. Here they would create or change objects that a
        # kube-apiserver alone does not touch.
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        "service-cidr-controller",
        "storage-version-migrator-controller",
    }
)
"""Controllers that `*` does not enable."""

_ALIASES: Final = {
    "attachdetach": "persistentvolume-attach-detach-controller",
    "bootstrapsigner": "bootstrap-signer-controller",
    "clusterrole-aggregation": "clusterrole-aggregation-controller",
    "cronjob": "cronjob-controller",
    "csrapproving": "certificatesigningrequest-approving-controller",
    "csrcleaner": "certificatesigningrequest-cleaner-controller",
    "csrsigning": "certificatesigningrequest-signing-controller",
    "daemonset": "daemonset-controller",
    "deployment": "deployment-controller",
    "disruption": "disruption-controller",
    "endpoint": "endpoints-controller",
    "endpointslice": "endpointslice-controller",
    "endpointslicemirroring": "endpointslice-mirroring-controller",
    "ephemeral-volume": "ephemeral-volume-controller",
    "garbagecollector": "garbage-collector-controller",
    "horizontalpodautoscaling": "horizontal-pod-autoscaler-controller",
    "job": "job-controller",
    "legacy-service-account-token-cleaner": "legacy-serviceaccount-token-cleaner-controller",
    "namespace": "namespace-controller",
    "nodeipam": "node-ipam-controller",
    "nodelifecycle": "node-lifecycle-controller",
    "persistentvolume-binder": "persistentvolume-binder-controller",
    "persistentvolume-expander": "persistentvolume-expander-controller",
    "podgc": "pod-garbage-collector-controller",
    "pv-protection": "persistentvolume-protection-controller",
    "pvc-protection": "persistentvolumeclaim-protection-controller",
    "replicaset": "replicaset-controller",
    "replicationcontroller": "replicationcontroller-controller",
    "resource-claim-controller": "resourceclaim-controller",
    "resourcequota": "resourcequota-controller",
    "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
    "serviceaccount": "serviceaccount-controller",
    "serviceaccount-token": "serviceaccount-token-controller",
    "statefulset": "statefulset-controller",
    "storage-version-gc": "storageversion-garbage-collector-controller",
    "svm": "storage-version-migrator-controller",
    "tokencleaner": "token-cleaner-controller",
    "ttl": "ttl-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
}
"""Former names, which upstream still accepts."""

KNOWN: Final = OFF_BY_DEFAULT.union(
    _ALIASES.values(),
    (
        "device-taint-eviction-controller",
        "podcertificaterequest-cleaner-controller",
        "podgroup-protection-controller",
        "resourcepoolstatusrequest-controller",
        "taint-eviction-controller",
        "validatingadmissionpolicy-status-controller",
        "volumeattributesclass-protection-controller",
    ),
)


class UnknownControllerError(ValueError):
    """The error of a controller name that kube-controller-manager does not know."""


def canonical(selection: Sequence[str]) -> tuple[str, ...]:
    """Return the items of `--controllers` in their order, with the former names of controllers replaced.

    Items are `NAME`, `-NAME`, `*` and `-*`. `-*`, which upstream rejects, selects nothing.

    Raises:
        UnknownControllerError: an item has an unknown name.
    """
    selected = []
    for item in selection:
        bare = item.removeprefix("-")
        name = _ALIASES.get(bare, bare)
        if bare != "*" and name not in KNOWN:
            raise UnknownControllerError(f'"{bare}" is not in the list of known controllers')
        selected.append(item[: len(item) - len(bare)] + name)
    return tuple(selected)


def enabled(name: str, selection: Sequence[str]) -> bool:
    """Return whether a controller is enabled by the items of `--controllers`, a result of `canonical`.

    `NAME` enables it and `-NAME` disables it; the first of these items decides. Without one, `*` enables it unless it
    is in `OFF_BY_DEFAULT`.
    """
    for item in selection:
        if item == name:
            return True
        if item == f"-{name}":
            return False
    return "*" in selection and name not in OFF_BY_DEFAULT
