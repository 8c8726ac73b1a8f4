"""NodeRestriction: limits what a kubelet writes to its own node, the pods bound to it, and objects that belong to them.

The resources are those in `_CHECKS`. Writes of other resources are left to the authorizers.
Off by default, as upstream. Nodes are users `system:node:NAME` of the group `system:nodes`.
Upstream: plugin/pkg/admission/noderestriction/admission.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from tetrapod.core.admission.kinds import PODS
from tetrapod.core.admission.mirror_pods import MirrorPods
from tetrapod.core.admission.node_certificates import NodeCertificateRequests, check_signing_request
from tetrapod.core.admission.node_identity import NODE_PREFIX, is_node, node_of
from tetrapod.core.admission.node_labels import may_be_set_by_kubelet, restricted
from tetrapod.core.admission.node_tokens import NodeTokens
from tetrapod.core.validation.differences import spec_difference
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.equality import same
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import not_found

_LEASES: Final = "kube-node-lease"
_CLAIM_STATUSES: Final = {
    "resourceClaimStatuses": "resource claim statues",
    "extendedResourceClaimStatus": "extended resource claim status",
    "nodeAllocatableResourceClaimStatuses": "node allocatable resource claim statuses",
}
_WRITABLE_VOLUME_STATUS: Final = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")
_Check = Callable[["NodeRestriction", Attributes, str], Awaitable[None]]


class NodeRestriction(Plugin):
    """The plugin that limits the writes of a kubelet to its own node and the objects of the pods bound to it.

    Each public method except `handles` and `admit` checks writes of one resource by a node. It raises StatusError (403,
    or 404 or 500 for a missing object) if the node may not make the write. The argument `node` is the node's name.
    """

    name = "NodeRestriction"
    operations = frozenset({"CREATE", "UPDATE", "DELETE"})

    def __init__(self, storages: StorageFactory, authorizer: Authorizer) -> None:
        self._pods = Lister(storages, PODS)
        self._mirror_pods = MirrorPods(storages)
        self._tokens = NodeTokens(storages, authorizer)
        self._certificate_requests = NodeCertificateRequests(storages, authorizer)

    def handles(self, attributes: Attributes) -> bool:
        return is_node(attributes.user)

    async def admit(self, attributes: Attributes) -> None:
        node = attributes.user.name.removeprefix(NODE_PREFIX)
        if not node:
            raise forbidden(attributes, f"could not determine node from user {go_quote(attributes.user.name)}")
        group, _, resource = attributes.resource
        check = _CHECKS.get((group, resource))
        if check is not None:
            await check(self, attributes, node)

    async def pod(self, attributes: Attributes, node: str) -> None:
        """Check a write of a pod by the method for its subresource, and reject those of unknown subresources."""
        check = _POD_CHECKS.get(attributes.subresource)
        if check is None:
            message = (
                f"unexpected pod subresource {go_quote(attributes.subresource)}, only 'status' and 'eviction' are "
                "allowed"
            )
            raise forbidden(attributes, message)
        await check(self, attributes, node)

    # --- pods

    async def pod_itself(self, attributes: Attributes, node: str) -> None:
        """Allow only the creation of mirror pods and the deletion of pods that are bound to the node."""
        if attributes.operation == "CREATE":
            if reason := await self._mirror_pods.error(attributes.object or {}, node):
                raise forbidden(attributes, reason)
        elif attributes.operation == "DELETE":
            pod = await self._pod(attributes)
            if node_of(pod) != node:
                raise forbidden(
                    attributes, f"node {go_quote(node)} can only delete pods with spec.nodeName set to itself"
                )
        else:
            raise forbidden(
                attributes,
                f"unexpected operation {go_quote(attributes.operation)}, node {go_quote(node)} can only create and "
                "delete mirror pods",
            )

    async def pod_status(self, attributes: Attributes, node: str) -> None:
        """Allow status updates of pods that are bound to the node.

        Changes of labels and of resource claim statuses are rejected.
        """
        if attributes.operation != "UPDATE":
            raise forbidden(attributes, f"unexpected operation {go_quote(attributes.operation)}")
        if node_of(attributes.old_object or {}) != node:
            raise forbidden(
                attributes,
                f"node {go_quote(node)} can only update pod status for pods with spec.nodeName set to itself",
            )
        old, new = attributes.old_object or {}, attributes.object or {}
        if ((old.get("metadata") or {}).get("labels") or {}) != ((new.get("metadata") or {}).get("labels") or {}):
            raise forbidden(attributes, f"node {go_quote(node)} cannot update labels through pod status")
        for key, text in _CLAIM_STATUSES.items():
            if ((old.get("status") or {}).get(key) or None) != ((new.get("status") or {}).get(key) or None):
                raise forbidden(attributes, f"node {go_quote(node)} cannot update {text}")

    async def eviction(self, attributes: Attributes, node: str) -> None:
        """Allow evictions of pods that are bound to the node."""
        if attributes.operation != "CREATE":
            raise forbidden(attributes, f"unexpected operation {attributes.operation}")
        pod = await self._pod(attributes)
        if node_of(pod) != node:
            raise forbidden(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")

    async def _pod(self, attributes: Attributes) -> Object:
        pod = await self._pods.get_live(attributes.namespace, attributes.name)
        if pod is None:
            raise not_found(GroupResource("", "pod"), attributes.name)
        return pod

    # --- nodes

    async def node(self, attributes: Attributes, node: str) -> None:
        """Allow writes of the Node with the node's own name.

        Changes of taints, owner references and labels that a kubelet may not set are rejected, and so is a new
        spec.configSource.
        """
        obj = attributes.object or {}
        meta = obj.get("metadata") or {}
        requested = attributes.name or meta.get("name", "")
        if requested != node:
            raise forbidden(attributes, f"node {go_quote(node)} is not allowed to modify node {go_quote(requested)}")
        if attributes.operation == "CREATE":
            if (obj.get("spec") or {}).get("configSource") is not None:
                raise forbidden(
                    attributes, f"node {go_quote(node)} is not allowed to create pods with a non-nil configSource"
                )
            forbidden_labels = sorted(
                label for label in meta.get("labels") or () if restricted(label) or not may_be_set_by_kubelet(label)
            )
            if forbidden_labels:
                raise forbidden(
                    attributes,
                    f"node {go_quote(node)} is not allowed to set the following labels: {', '.join(forbidden_labels)}",
                )
        elif attributes.operation == "UPDATE":
            self._node_update(attributes, node, obj, attributes.old_object or {})

    def _node_update(self, attributes: Attributes, node: str, new: Object, old: Object) -> None:
        spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
        if spec.get("configSource") is not None and spec["configSource"] != old_spec.get("configSource"):
            raise forbidden(
                attributes, f"node {go_quote(node)} is not allowed to update configSource to a new non-nil configSource"
            )
        if (old_spec.get("taints") or None) != (spec.get("taints") or None):
            raise forbidden(attributes, f"node {go_quote(node)} is not allowed to modify taints")
        meta, old_meta = new.get("metadata") or {}, old.get("metadata") or {}
        if (meta.get("ownerReferences") or None) != (old_meta.get("ownerReferences") or None):
            raise forbidden(attributes, f"node {go_quote(node)} is not allowed to modify ownerReferences")
        forbidden_labels = _modified_labels(meta.get("labels") or {}, old_meta.get("labels") or {})
        if forbidden_labels:
            raise forbidden(attributes, f"is not allowed to modify labels: {', '.join(forbidden_labels)}")

    # --- volume claims, tokens, certificates

    async def volume_claim(self, attributes: Attributes, node: str) -> None:
        """Allow only updates of a PersistentVolumeClaim's status that change capacity, conditions or resize status."""
        if attributes.subresource != "status":
            raise forbidden(attributes, "may only update PVC status")
        if attributes.operation != "UPDATE":
            raise forbidden(attributes, f"unexpected operation {go_quote(attributes.operation)}")
        old, new = (_without_writable(obj or {}) for obj in (attributes.old_object, attributes.object))
        if not same(old, new):
            text = (
                f"node {go_quote(node)} is not allowed to update fields other than status.quantity and "
                "status.conditions"
            )
            raise forbidden(attributes, f"{text}: {spec_difference('PersistentVolumeClaim', old, new)}")

    async def service_account(self, attributes: Attributes, node: str) -> None:
        """Check that a token request is for a pod of the node and an audience that is allowed. Other writes pass."""
        if attributes.operation == "CREATE" and attributes.subresource == "token":
            await self._tokens.check(attributes, node)

    async def certificate_request(self, attributes: Attributes, node: str) -> None:
        """Check that a PodCertificateRequest is for a pod of the node and for a signer that the pod may use."""
        if not feature_gates.enabled("PodCertificateRequest"):
            raise forbidden(attributes, "PodCertificateRequest feature gate is disabled")
        await self._certificate_requests.check(attributes, node)

    async def signing_request(self, attributes: Attributes, node: str) -> None:
        """Check that a new CertificateSigningRequest for a kubelet signer has the node's user name as common name.

        Requests for other signers and operations other than create pass. A feature gate lets all of them pass.
        """
        if not feature_gates.enabled("AllowInsecureKubeletCertificateSigningRequests"):
            check_signing_request(attributes)

    # --- leases, CSI nodes, resource slices

    async def lease(self, attributes: Attributes, node: str) -> None:
        """Allow only the Lease in kube-node-lease that has the node's name."""
        if attributes.namespace != _LEASES:
            raise forbidden(attributes, f"can only access leases in the {go_quote(_LEASES)} system namespace")
        name = attributes.name or ((attributes.object or {}).get("metadata") or {}).get("name", "")
        if name != node:
            raise forbidden(attributes, "can only access node lease with the same name as the requesting node")

    async def csi_node(self, attributes: Attributes, node: str) -> None:
        """Allow only writes of the CSINode with the node's name, and of its status only with a feature gate."""
        name = attributes.name or ((attributes.object or {}).get("metadata") or {}).get("name", "")
        if name != node:
            raise forbidden(attributes, "can only access CSINode with the same name as the requesting node")
        if attributes.subresource == "status":
            if not feature_gates.enabled("CSIVolumeHealth"):
                raise forbidden(attributes, "CSIVolumeHealth feature gate is disabled")
            specs = [(obj or {}).get("spec") for obj in (attributes.old_object, attributes.object)]
            if not same(*specs):
                text = f"node {go_quote(node)} is not allowed to modify CSINode spec via status"
                raise forbidden(attributes, text)

    async def resource_slice(self, attributes: Attributes, node: str) -> None:
        """Allow creates and deletes only of ResourceSlices whose spec.nodeName is the node. Updates pass."""
        obj = attributes.old_object if attributes.operation == "DELETE" else attributes.object
        if attributes.operation in ("CREATE", "DELETE") and ((obj or {}).get("spec") or {}).get("nodeName") != node:
            verb = "create" if attributes.operation == "CREATE" else "delete"
            raise forbidden(attributes, f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


def _without_writable(claim: Object) -> Object:
    """Return a copy of a PersistentVolumeClaim without the status fields that nodes may update.

    The copy has no resource version, managed fields and empty metadata either, so that two copies can be compared.
    """
    metadata = {
        key: value
        for key, value in (claim.get("metadata") or {}).items()
        if key not in ("resourceVersion", "managedFields") and value not in (None, [], {}, "")
    }
    status = {key: value for key, value in (claim.get("status") or {}).items() if key not in _WRITABLE_VOLUME_STATUS}
    return {"metadata": metadata, "spec": claim.get("spec") or {}, "status": status}


def _modified_labels(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    """Return the sorted keys of labels that differ between `new` and `old` and that a kubelet may not set."""
    changed = {label for label in new.keys() | old.keys() if new.get(label) != old.get(label)}
    return sorted(label for label in changed if restricted(label) or not may_be_set_by_kubelet(label))


_POD_CHECKS: Final[dict[str, _Check]] = {
    "": NodeRestriction.pod_itself,
    "status": NodeRestriction.pod_status,
    "eviction": NodeRestriction.eviction,
}
_CHECKS: Final[dict[tuple[str, str], _Check]] = {
    ("", "pods"): NodeRestriction.pod,
    ("", "nodes"): NodeRestriction.node,
    ("", "persistentvolumeclaims"): NodeRestriction.volume_claim,
    ("", "serviceaccounts"): NodeRestriction.service_account,
    ("certificates.k8s.io", "certificatesigningrequests"): NodeRestriction.signing_request,
    ("certificates.k8s.io", "podcertificaterequests"): NodeRestriction.certificate_request,
    ("coordination.k8s.io", "leases"): NodeRestriction.lease,
    ("storage.k8s.io", "csinodes"): NodeRestriction.csi_node,
    ("resource.k8s.io", "resourceslices"): NodeRestriction.resource_slice,
}
