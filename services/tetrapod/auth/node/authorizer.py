"""`NodeAuthorizer`, which limits a kubelet to the objects that the pods of its node need.

The names and labels that a node writes are checked by the NodeRestriction admission plugin, not here.

Upstream: plugin/pkg/auth/authorizer/node/node_authorizer.go, including the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tetrapod.auth.node.graph import NodeGraph
from tetrapod.auth.node.references import Vertex
from tetrapod.auth.rbac.policy import node_rules
from tetrapod.generic.authentication.serviceaccount import NODE_PREFIX, NODES_GROUP
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Decision, ResolvedRules
from tetrapod.generic.authorization.rules import allows
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.user import UserInfo

_ALLOW: Final = AuthorizationResult(Decision.ALLOW)
_NO_OPINION: Final = AuthorizationResult(Decision.NO_OPINION)
_LEASE_NAMESPACE: Final = "kube-node-lease"
_ACCOUNTS: Final = ("KubeletServiceAccountTokenForCredentialProviders", "PodCertificateRequest")
"""The gates that let nodes read service accounts."""
_OWN_VERBS: Final = ("get", "create", "update", "patch", "delete")


def no_opinion(reason: str) -> AuthorizationResult:
    """Return the decision NO_OPINION with a reason."""
    return AuthorizationResult(Decision.NO_OPINION, reason)


def is_node(user: UserInfo) -> bool:
    """Return whether the user is a kubelet: named `system:node:NAME` and a member of `system:nodes`."""
    return user.name.startswith(NODE_PREFIX) and NODES_GROUP in user.groups


class NodeAuthorizer:
    """The authorizer of kubelets. Its decisions are ALLOW and NO_OPINION; other users always get NO_OPINION.

    When a kubelet first accesses a resource with a rule of its own, such as a Secret, a Lease or a Node, it waits until
    the graph is ready.
    """

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._rules = node_rules()
        self._by_resource: dict[tuple[str, str], Callable[[str, Attributes], AuthorizationResult]] = {
            ("", "secrets"): self._read_related,
            ("", "configmaps"): self._read_related,
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._get_related,
            ("resource.k8s.io", "resourceclaims"): self._get_related,
            ("storage.k8s.io", "volumeattachments"): self._get_related,
            ("", "serviceaccounts"): self._service_account,
            ("coordination.k8s.io", "leases"): self._lease,
            ("storage.k8s.io", "csinodes"): self._csi_node,
            ("resource.k8s.io", "resourceslices"): self._resource_slice,
            ("certificates.k8s.io", "podcertificaterequests"): self._certificate_request,
            ("", "nodes"): self._node,
            ("", "pods"): self._pod,
        }

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        if not is_node(attributes.user):
            return _NO_OPINION
        node = attributes.user.name.removeprefix(NODE_PREFIX)
        if not node:
            return no_opinion(f"unknown node for user {go_quote(attributes.user.name)}")
        if attributes.resource_request:
            special = self._by_resource.get((attributes.group, attributes.resource))
            if special is not None:
                await self._graph.ready()
                return special(node, attributes)
        return _ALLOW if any(allows(rule, attributes) for rule in self._rules) else _NO_OPINION

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return an incomplete result with an error text for kubelets, and an empty result for other users."""
        if is_node(user):
            return ResolvedRules([], [], True, "node authorizer does not support user rule resolution")
        return ResolvedRules([], [], False, "")

    def _related(self, node: str, attributes: Attributes) -> AuthorizationResult:
        if not attributes.name:
            return no_opinion("No Object name found")
        if self._graph.related(node, Vertex(attributes.resource, attributes.namespace, attributes.name)):
            return _ALLOW
        return no_opinion(f"no relationship found between node '{node}' and this object")

    def _get_related(self, node: str, attributes: Attributes) -> AuthorizationResult:
        if attributes.verb != "get":
            return no_opinion("can only get individual resources of this type")
        return no_opinion("cannot get subresource") if attributes.subresource else self._related(node, attributes)

    def _read_related(self, node: str, attributes: Attributes) -> AuthorizationResult:
        if attributes.verb not in ("get", "list", "watch"):
            return no_opinion("can only read resources of this type")
        if attributes.subresource:
            return no_opinion("cannot read subresource")
        return (
            self._related(node, attributes)
            if attributes.namespace
            else no_opinion("can only read namespaced object of this type")
        )

    def _claim(self, node: str, attributes: Attributes) -> AuthorizationResult:
        if attributes.subresource != "status":
            return self._get_related(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return no_opinion("can only get/update/patch this type")
        return self._related(node, attributes)

    def _service_account(self, node: str, attributes: Attributes) -> AuthorizationResult:
        if attributes.verb == "get" and not attributes.subresource:
            if not any(map(feature_gates.enabled, _ACCOUNTS)):
                return no_opinion("not allowed to get service accounts")
            return self._read_related(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return no_opinion("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return no_opinion("can only create token subresource of serviceaccount")
        return self._related(node, attributes)

    def _lease(self, node: str, attributes: Attributes) -> AuthorizationResult:
        if attributes.verb not in _OWN_VERBS:
            return no_opinion("can only get, create, update, patch, or delete a node lease")
        if attributes.namespace != _LEASE_NAMESPACE:
            return no_opinion(f"can only access leases in the {go_quote(_LEASE_NAMESPACE)} system namespace")
        if attributes.verb != "create" and attributes.name != node:
            return no_opinion("can only access node lease with the same name as the requesting node")
        return _ALLOW

    def _csi_node(self, node: str, attributes: Attributes) -> AuthorizationResult:
        if attributes.subresource not in ("", "status"):
            return no_opinion("cannot authorize CSINode subresources")
        if not attributes.subresource and attributes.verb not in _OWN_VERBS:
            return no_opinion("can only get, create, update, patch, or delete a CSINode")
        if attributes.subresource and not feature_gates.enabled("CSIVolumeHealth"):
            return no_opinion("CSINode status access requires CSIVolumeHealth feature")
        if attributes.subresource and attributes.verb not in ("get", "update", "patch"):
            return no_opinion("can only get, update, or patch CSINode status")
        if attributes.verb != "create" and attributes.name != node:
            return no_opinion("can only access CSINode with the same name as the requesting node")
        return _ALLOW

    def _resource_slice(self, node: str, attributes: Attributes) -> AuthorizationResult:
        if attributes.subresource:
            return no_opinion("cannot authorize ResourceSlice subresources")
        if attributes.verb == "create":
            return _ALLOW
        if attributes.verb in ("get", "update", "patch", "delete"):
            return self._related(node, attributes)
        if attributes.verb in ("watch", "list", "deletecollection"):
            if _selects(attributes, "spec.nodeName", node):
                return _ALLOW
            return no_opinion("can only list/watch/deletecollection resourceslices with nodeName field selector")
        verbs = "get, watch, list, create, update, patch, delete, deletecollection"
        return no_opinion(f"only the following verbs are allowed for a ResourceSlice: {verbs}")

    def _certificate_request(self, node: str, attributes: Attributes) -> AuthorizationResult:
        if not feature_gates.enabled("PodCertificateRequest"):
            return _NO_OPINION
        if attributes.subresource:
            return no_opinion("nodes may not access the status subresource of PodCertificateRequests")
        if attributes.verb == "create":
            return _ALLOW
        if attributes.verb == "get":
            return self._related(node, attributes)
        if attributes.verb in ("list", "watch"):
            if _selects(attributes, "spec.nodeName", node):
                return _ALLOW
            return no_opinion("can only list/watch podcertificaterequests with nodeName field selector")
        return no_opinion(f"nodes may not {attributes.verb} podcertificaterequests")

    def _node(self, node: str, attributes: Attributes) -> AuthorizationResult:
        verb, subresource = attributes.verb, attributes.subresource
        if not subresource and verb in ("create", "update", "patch"):
            return _ALLOW
        if not subresource and verb in ("get", "list", "watch"):
            if attributes.name == node:
                return _ALLOW
            if not attributes.name:
                return no_opinion(f"node '{node}' cannot read all nodes, only its own Node object")
            return no_opinion(f"node '{node}' cannot read '{attributes.name}', only its own Node object")
        return _ALLOW if subresource == "status" and verb in ("update", "patch") else _NO_OPINION

    def _pod(self, node: str, attributes: Attributes) -> AuthorizationResult:
        verb, subresource = attributes.verb, attributes.subresource
        if not subresource and verb == "get":
            return self._get_related(node, attributes)
        if not subresource and verb in ("list", "watch"):
            if _selects(attributes, "spec.nodeName", node):
                return _ALLOW
            return (
                self._related(node, attributes)
                if attributes.name
                else no_opinion("can only list/watch pods with spec.nodeName field selector")
            )
        return _ALLOW if verb in _POD_WRITES.get(subresource, ()) else _NO_OPINION


_POD_WRITES: Final[dict[str, Sequence[str]]] = {
    "": ("create", "delete"),
    "status": ("update", "patch"),
    "eviction": ("create",),
}


def _selects(attributes: Attributes, key: str, value: str) -> bool:
    return any(
        r["key"] == key and r["operator"] == "In" and list(r.get("values") or ()) == [value]
        for r in attributes.field_requirements
    )
