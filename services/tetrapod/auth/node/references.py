"""The objects that a node needs because of a pod, a volume or another object: the edges of `NodeGraph` (graph.py).

Upstream: plugin/pkg/auth/authorizer/node/graph_populator.go and graph.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from tetrapod.machinery.gvk import Object

_MIRROR: Final = "kubernetes.io/config.mirror"
_SECRET_REFS: Final = ("azureFile", "cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")


class Vertex(NamedTuple):
    """An object of the graph.

    Attributes:
        kind: the plural name of its resource, such as "secrets".
        namespace: its namespace; "" for a cluster-scoped object.
        name: its name.
    """

    kind: str
    namespace: str
    name: str


def read_node(obj: Object) -> tuple[str, Iterable[Vertex]]:
    """Return the node in an object's spec.nodeName ("" for none), and () because the node needs no other objects."""
    return (obj.get("spec") or {}).get("nodeName") or "", ()


def read_pod(pod: Object) -> tuple[str, Iterable[Vertex]]:
    """Return the node of a pod ("" for none), and the objects that the node needs to run it."""
    spec = pod.get("spec") or {}
    if _MIRROR in (pod["metadata"].get("annotations") or {}):
        return spec.get("nodeName") or "", ()  # a mirror pod, which the kubelet itself wrote, grants it nothing
    return spec.get("nodeName") or "", pod_references(pod)


def pod_references(pod: Object) -> Iterator[Vertex]:
    """Yield every object that a node needs to run the pod: service account, Secrets, ConfigMaps and claims.

    Objects can repeat.

    Upstream: podutil.VisitPodSecretNames and related functions.
    """
    namespace, spec = pod["metadata"].get("namespace", ""), pod.get("spec") or {}
    if account := spec.get("serviceAccountName"):
        yield Vertex("serviceaccounts", namespace, account)
    for secret in spec.get("imagePullSecrets") or ():
        yield Vertex("secrets", namespace, secret.get("name") or "")
    for part in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(part) or ():
            yield from _container_references(container, namespace)
    for volume in spec.get("volumes") or ():
        yield from _volume_references(volume, namespace, pod["metadata"]["name"])
    yield from _claim_references(pod, namespace)


def _container_references(container: Object, namespace: str) -> Iterator[Vertex]:
    for source in container.get("envFrom") or ():
        yield from _named(source, namespace, secretRef="secrets", configMapRef="configmaps")
    for variable in container.get("env") or ():
        yield from _named(
            variable.get("valueFrom") or {}, namespace, secretKeyRef="secrets", configMapKeyRef="configmaps"
        )


def _named(source: Object, namespace: str, **kinds: str) -> Iterator[Vertex]:
    for key, kind in kinds.items():
        if name := (source.get(key) or {}).get("name"):
            yield Vertex(kind, namespace, name)


def _volume_references(volume: Object, namespace: str, pod: str) -> Iterator[Vertex]:
    if name := (volume.get("secret") or {}).get("secretName"):
        yield Vertex("secrets", namespace, name)
    yield from _named(volume, namespace, configMap="configmaps")
    if name := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
        yield Vertex("persistentvolumeclaims", namespace, name)
    if volume.get("ephemeral") is not None:
        yield Vertex("persistentvolumeclaims", namespace, f"{pod}-{volume.get('name', '')}")
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _named(source, namespace, secret="secrets", configMap="configmaps")
    if name := (volume.get("azureFile") or {}).get("secretName"):
        yield Vertex("secrets", namespace, name)
    if name := ((volume.get("csi") or {}).get("nodePublishSecretRef") or {}).get("name"):
        yield Vertex("secrets", namespace, name)
    for kind in _SECRET_REFS:
        if name := ((volume.get(kind) or {}).get("secretRef") or {}).get("name"):
            yield Vertex("secrets", namespace, name)


def _claim_references(pod: Object, namespace: str) -> Iterator[Vertex]:
    """Yield the ResourceClaims of a pod.

    These are the claims named in its spec, and those that were created for the pod and are named in its status.
    """
    status: dict[str, Any] = pod.get("status") or {}
    names = [claim.get("resourceClaimName") for claim in (pod.get("spec") or {}).get("resourceClaims") or ()]
    names += [claim.get("resourceClaimName") for claim in status.get("resourceClaimStatuses") or ()]
    names.append((status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))
    yield from (Vertex("resourceclaims", namespace, name) for name in names if name)


def read_volume(volume: Object) -> tuple[Vertex | None, frozenset[Vertex]]:
    """Return the claim that a PersistentVolume is bound to, and the Secrets needed to mount it.

    Returns:
        None and no Secrets if the volume is not bound.
    """
    spec = volume.get("spec") or {}
    ref = spec.get("claimRef") or {}
    if not ref.get("name"):
        return None, frozenset()
    namespace = ref.get("namespace") or ""
    secrets: set[Vertex] = set()
    if name := (spec.get("azureFile") or {}).get("secretName"):
        secrets.add(Vertex("secrets", (spec["azureFile"].get("secretNamespace")) or namespace, name))
    for kind in _SECRET_REFS:
        if name := ((spec.get(kind) or {}).get("secretRef") or {}).get("name"):
            secrets.add(Vertex("secrets", spec[kind]["secretRef"].get("namespace") or namespace, name))
    for key in ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"):  # not those of controllers
        if name := ((spec.get("csi") or {}).get(key) or {}).get("name"):
            secrets.add(Vertex("secrets", spec["csi"][key].get("namespace") or namespace, name))
    return Vertex("persistentvolumeclaims", namespace, ref["name"]), frozenset(secrets)
