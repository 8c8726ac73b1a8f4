"""Helpers of NodeRestriction's checks: the node of a user, the node of a pod, synthetic authorization attributes."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.authorization.interface import Attributes as AuthorizationAttributes
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.user import UserInfo

NODE_PREFIX: Final = "system:node:"
_GROUP: Final = "system:nodes"


def is_node(user: UserInfo) -> bool:
    """Return whether the user is a kubelet: named `system:node:NAME` and a member of `system:nodes`.

    Upstream: pkg/auth/nodeidentifier/default.go.
    """
    return _GROUP in user.groups and user.name.startswith(NODE_PREFIX)


def node_of(pod: Object) -> str:
    """Return the name of the node that a pod is bound to, or ""."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def synthetic(attributes: Attributes, verb: str, resource: str, name: str) -> AuthorizationAttributes:
    """Return attributes to authorize a verb of NodeRestriction on a resource that exists only in RBAC rules.

    Args:
        attributes: the request: its user, namespace and API group are those of the result.
        verb: such as "request-serviceaccounts-token-audience".
        resource: the resource in the rules, such as an audience or a signer.
        name: the name of the service account.

    Upstream: plugin/pkg/admission/noderestriction/admission.go, buildAuthorizerAttributes.
    """
    group, version, _ = attributes.resource
    return AuthorizationAttributes(
        attributes.user, verb, attributes.namespace, group, version, resource, "", name, resource_request=True
    )
