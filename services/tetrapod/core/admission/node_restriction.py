"""NodeRestriction: a kubelet may change only its own node and the pods bound to it (upstream: plugin/pkg/admission/noderestriction).

Off by default, as upstream; nodes are users `system:node:NAME` of group `system:nodes`.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tetrapod.core.admission.kinds import PODS
from tetrapod.core.admission.mirror_pods import MirrorPods
from tetrapod.core.admission.node_labels import may_be_set_by_kubelet, restricted
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import StatusError, not_found

_PREFIX: Final = "system:node:"
_GROUP: Final = "system:nodes"
_LEASES: Final = "kube-node-lease"
_CLAIM_STATUSES: Final = {
    "resourceClaimStatuses": "resource claim statues",
    "extendedResourceClaimStatus": "extended resource claim status",
    "nodeAllocatableResourceClaimStatuses": "node allocatable resource claim statuses",
}
_CLIENT_SIGNERS: Final = frozenset({"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"})
_UID_MISMATCH: Final = (
    "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated"
)
_Check = Callable[["NodeRestriction", Attributes, str], Awaitable[None]]


class NodeRestriction(Plugin):
    name = "NodeRestriction"
    operations = frozenset({"CREATE", "UPDATE", "DELETE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._pods = Lister(storages, PODS)
        self._mirror_pods = MirrorPods(storages)

    def handles(self, attributes: Attributes) -> bool:
        return _GROUP in attributes.user.groups and attributes.user.name.startswith(_PREFIX)

    async def admit(self, attributes: Attributes) -> None:
        group, _, resource = attributes.resource
        path = f"{resource}/{attributes.subresource}" if attributes.subresource else resource
        check = _CHECKS.get((group, path))
        if check is not None:
            await check(self, attributes, attributes.user.name.removeprefix(_PREFIX))

    # --- pods

    async def pod(self, attributes: Attributes, node: str) -> None:
        if attributes.operation == "CREATE":
            if why := await self._mirror_pods.fault(attributes.object or {}, node):
                raise forbidden(attributes, why)
        elif attributes.operation == "DELETE":
            pod = await self._pod(attributes)
            if _node_of(pod) != node:
                raise forbidden(attributes, f"node {go_quote(node)} can only delete pods with spec.nodeName set to itself")
        else:
            raise forbidden(
                attributes,
                f"unexpected operation {go_quote(attributes.operation)}, node {go_quote(node)} can only create and delete mirror pods",
            )

    async def pod_status(self, attributes: Attributes, node: str) -> None:
        if attributes.operation != "UPDATE":
            raise forbidden(attributes, f"unexpected operation {go_quote(attributes.operation)}")
        if _node_of(attributes.old_object or {}) != node:
            raise forbidden(attributes, f"node {go_quote(node)} can only update pod status for pods with spec.nodeName set to itself")
        old, new = attributes.old_object or {}, attributes.object or {}
        if (old.get("metadata") or {}).get("labels") != (new.get("metadata") or {}).get("labels"):
            raise forbidden(attributes, f"node {go_quote(node)} cannot update labels through pod status")
        for key, told in _CLAIM_STATUSES.items():
            if ((old.get("status") or {}).get(key) or None) != ((new.get("status") or {}).get(key) or None):
                raise forbidden(attributes, f"node {go_quote(node)} cannot update {told}")

    async def eviction(self, attributes: Attributes, node: str) -> None:
        pod = await self._pod(attributes)
        if _node_of(pod) != node:
            raise forbidden(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")

    async def _pod(self, attributes: Attributes) -> Object:
        pod = await self._pods.get_live(attributes.namespace, attributes.name)
        if pod is None:
            raise not_found(GroupResource("", "pods"), attributes.name)
        return pod

    # --- nodes

    async def node(self, attributes: Attributes, node: str) -> None:
        obj = attributes.object or {}
        meta = obj.get("metadata") or {}
        requested = attributes.name or meta.get("name", "")
        if requested != node:
            raise forbidden(attributes, f"node {go_quote(node)} is not allowed to modify node {go_quote(requested)}")
        if attributes.operation == "CREATE":
            if (obj.get("spec") or {}).get("configSource") is not None:
                raise forbidden(attributes, f"node {go_quote(node)} is not allowed to create pods with a non-nil configSource")
            wrong = sorted(label for label in meta.get("labels") or () if restricted(label) or not may_be_set_by_kubelet(label))
            if wrong:
                raise forbidden(attributes, f"node {go_quote(node)} is not allowed to set the following labels: {', '.join(wrong)}")
        elif attributes.operation == "UPDATE":
            self._node_update(attributes, node, obj, attributes.old_object or {})

    def _node_update(self, attributes: Attributes, node: str, new: Object, old: Object) -> None:
        spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
        if spec.get("configSource") is not None and spec["configSource"] != old_spec.get("configSource"):
            raise forbidden(attributes, f"node {go_quote(node)} is not allowed to update configSource to a new non-nil configSource")
        if (old_spec.get("taints") or None) != (spec.get("taints") or None):
            raise forbidden(attributes, f"node {go_quote(node)} is not allowed to modify taints")
        meta, old_meta = new.get("metadata") or {}, old.get("metadata") or {}
        if (meta.get("ownerReferences") or None) != (old_meta.get("ownerReferences") or None):
            raise forbidden(attributes, f"node {go_quote(node)} is not allowed to modify ownerReferences")
        wrong = _modified_labels(meta.get("labels") or {}, old_meta.get("labels") or {})
        if wrong:
            raise forbidden(attributes, f"is not allowed to modify labels: {', '.join(wrong)}")

    # --- tokens, leases, CSI nodes, certificates, resource slices

    async def token(self, attributes: Attributes, node: str) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        ref = spec.get("boundObjectRef")
        if not ref or ref.get("apiVersion") != "v1" or ref.get("kind") != "Pod" or not ref.get("name"):
            raise forbidden(attributes, "node requested token not bound to a pod")
        if not ref.get("uid"):
            raise forbidden(attributes, "node requested token with a pod binding without a uid")
        pod = await self._pods.get_live(attributes.namespace, ref["name"])
        if pod is None:
            raise not_found(GroupResource("", "pod"), ref["name"])
        if pod["metadata"]["uid"] != ref["uid"]:
            raise forbidden(attributes, _UID_MISMATCH.format(ref["uid"]))
        if _node_of(pod) != node:
            raise forbidden(attributes, "node requested token bound to a pod scheduled on a different node")
        self._audiences(attributes, pod, spec.get("audiences") or [])

    def _audiences(self, attributes: Attributes, pod: Object, audiences: list[str]) -> None:
        if len(audiences) > 1:
            raise forbidden(attributes, "node may only request 0 or 1 audiences")
        allowed = _projected_audiences(pod)
        asked = audiences[0] if audiences else ""
        if asked not in allowed:
            raise forbidden(attributes, f"{attributes.user.name} is not authorized to request tokens for audience {go_quote(asked)}")

    async def lease(self, attributes: Attributes, node: str) -> None:
        if attributes.namespace != _LEASES:
            raise forbidden(attributes, f"can only access leases in the {go_quote(_LEASES)} system namespace")
        name = attributes.name or ((attributes.object or {}).get("metadata") or {}).get("name", "")
        if name != node:
            raise forbidden(attributes, "can only access node lease with the same name as the requesting node")

    async def csi_node(self, attributes: Attributes, node: str) -> None:
        name = attributes.name or ((attributes.object or {}).get("metadata") or {}).get("name", "")
        if name != node:
            raise forbidden(attributes, "can only access CSINode with the same name as the requesting node")

    async def signing_request(self, attributes: Attributes, node: str) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        if attributes.operation != "CREATE" or spec.get("signerName") not in _CLIENT_SIGNERS:
            return
        name = _common_name(attributes, spec.get("request") or "")
        if name != attributes.user.name:
            raise forbidden(attributes, f"can only create a node CSR with CN={attributes.user.name}")

    async def resource_slice(self, attributes: Attributes, node: str) -> None:
        obj = attributes.old_object if attributes.operation == "DELETE" else attributes.object
        if attributes.operation in ("CREATE", "DELETE") and ((obj or {}).get("spec") or {}).get("nodeName") != node:
            verb = "create" if attributes.operation == "CREATE" else "delete"
            raise forbidden(attributes, f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


def _node_of(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _projected_audiences(pod: Object) -> set[str]:
    """What a pod's token volumes ask for; "" is the server's own."""
    found: set[str] = set()
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if (token := source.get("serviceAccountToken")) is not None:
                found.add(token.get("audience") or "")
    return found


def _modified_labels(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    changed = {label for label in new.keys() | old.keys() if new.get(label) != old.get(label)}
    return sorted(label for label in changed if restricted(label) or not may_be_set_by_kubelet(label))


def _common_name(attributes: Attributes, request: str) -> str:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        csr = x509.load_pem_x509_csr(base64.b64decode(request))
    except ValueError as error:
        raise _unparsable(attributes, error) from None
    names = csr.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""


def _unparsable(attributes: Attributes, error: Exception) -> StatusError:
    return forbidden(attributes, f"unable to parse csr: {error}")


_CHECKS: Final[dict[tuple[str, str], _Check]] = {
    ("", "pods"): NodeRestriction.pod,
    ("", "pods/status"): NodeRestriction.pod_status,
    ("", "pods/eviction"): NodeRestriction.eviction,
    ("", "nodes"): NodeRestriction.node,
    ("", "nodes/status"): NodeRestriction.node,
    ("", "serviceaccounts/token"): NodeRestriction.token,
    ("coordination.k8s.io", "leases"): NodeRestriction.lease,
    ("storage.k8s.io", "csinodes"): NodeRestriction.csi_node,
    ("certificates.k8s.io", "certificatesigningrequests"): NodeRestriction.signing_request,
    ("resource.k8s.io", "resourceslices"): NodeRestriction.resource_slice,
}
