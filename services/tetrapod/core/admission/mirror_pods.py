"""The checks of mirror pods, which a kubelet creates for its static pods.

Upstream: plugin/pkg/admission/noderestriction/admission.go, admitPodCreate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tetrapod.core.admission.kinds import NODES
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import not_found

MIRROR: Final = "kubernetes.io/config.mirror"
_ITSELF: Final = "can only create pods with an owner reference set to itself"
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_SECRETS: Final = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
_VOLUMES: Final = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED: Final = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


class MirrorPods:
    """The check of pods that a kubelet creates.

    They must be mirror pods, be owned by its node and refer to no API object.
    """

    def __init__(self, storages: StorageFactory) -> None:
        self._nodes = Lister(storages, NODES)

    async def error(self, pod: Object, node: str) -> str:
        """Return an error text if the node may not create the pod, else "".

        A node may only create mirror pods of itself that refer to no other objects, such as Secrets.

        Args:
            node: the name of the node.

        Raises:
            StatusError: 404, the node does not exist.
        """
        meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        subject = f"node {go_quote(node)}"
        if MIRROR not in (meta.get("annotations") or {}):
            return f"pod does not have {go_quote(MIRROR)} annotation, {subject} can only create mirror pods"
        if (spec.get("nodeName") or "") != node:
            return f"{subject} can only create pods with spec.nodeName set to itself"
        owners = meta.get("ownerReferences") or []
        if len(owners) > 1:
            return f"{subject} can only create pods with a single owner reference set to itself"
        if error := await self._owner_error(owners[0] if owners else {}, node):
            return error
        referenced = reference(spec)
        return f"{subject} can not create pods that reference {referenced}" if referenced else ""

    async def _owner_error(self, owner: Object, node: str) -> str:
        subject = f"node {go_quote(node)}"
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
            return f"{subject} {_ITSELF}"
        if not owner.get("controller"):
            return f"{subject} can only create pods with a controller owner reference set to itself"
        if owner.get("blockOwnerDeletion"):
            return f"{subject} must not set blockOwnerDeletion on an owner reference"
        stored = await self._nodes.get_live("", node)
        if stored is None:
            raise not_found(GroupResource("", "node"), node)
        uid = stored["metadata"]["uid"]
        return (
            "" if owner.get("uid") == uid else f"node {node} UID mismatch: expected {owner.get('uid') or ''} got {uid}"
        )


def reference(spec: Object) -> str:
    """Return the kind of API object that a pod spec refers to, in words for an error text, or "" if it refers to none.

    If it refers to several kinds, the result is the first in the order of upstream's HasAPIObjectReference.
    """
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if refers_to_secrets(spec):
        return "secrets"
    if any(_uses(spec, "configMapRef", "configMapKeyRef")) or any(_config_volumes(spec)):
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        for key, resource in _VOLUMES.items():
            if volume.get(key) is not None:
                return resource
        for source in (volume.get("projected") or {}).get("sources") or ():
            for key, resource in _PROJECTED.items():
                if source.get(key) is not None:
                    return resource
    return ""


def refers_to_secrets(spec: Object) -> bool:
    """Return whether the spec names a Secret: for image pulls, in environment variables or in volumes.

    References without a name do not count.

    Upstream: pkg/api/pod/util.go, VisitPodSecretNames.
    """
    return (
        any(reference.get("name") for reference in spec.get("imagePullSecrets") or ())
        or any(_uses(spec, "secretRef", "secretKeyRef"))
        or any(_secret_volumes(spec))
    )


def _uses(spec: Object, whole: str, key: str) -> Iterator[bool]:
    """Yield whether a container takes environment variables from an object of one kind, for each variable and source.

    Args:
        spec: the pod spec, whose containers of all kinds are visited.
        whole: the field of an `envFrom` entry that refers to the kind, such as "secretRef".
        key: the field of a variable's `valueFrom` that refers to the kind, such as "secretKeyRef".
    """
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            yield from (_is_named(source, whole) for source in container.get("envFrom") or ())
            yield from (_is_named(variable.get("valueFrom"), key) for variable in container.get("env") or ())


def _secret_volumes(spec: Object) -> Iterator[bool]:
    for volume in spec.get("volumes") or ():
        yield any(_is_named(volume, kind, "secretName") for kind in ("secret", "azureFile"))
        yield any(_is_named(volume.get(kind), "secretRef") for kind in _SECRETS)
        yield _is_named(volume.get("csi"), "nodePublishSecretRef")
        yield any(_is_named(source, "secret") for source in (volume.get("projected") or {}).get("sources") or ())


def _config_volumes(spec: Object) -> Iterator[bool]:
    for volume in spec.get("volumes") or ():
        yield _is_named(volume, "configMap")
        yield any(_is_named(source, "configMap") for source in (volume.get("projected") or {}).get("sources") or ())


def _is_named(holder: Object | None, reference: str, key: str = "name") -> bool:
    """Return whether a reference in an object exists and has a name."""
    return bool(((holder or {}).get(reference) or {}).get(key))
