"""The user names and groups of service accounts and nodes.

Upstream: k8s.io/apiserver/pkg/authentication/serviceaccount.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.names import is_dns1123_label, is_dns1123_subdomain, name_is_dns_subdomain
from tetrapod.machinery.user import UserInfo

SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
ALL_SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
NODE_PREFIX: Final = "system:node:"
NODES_GROUP: Final = "system:nodes"

CREDENTIAL_ID_KEY: Final = "authentication.kubernetes.io/credential-id"
POD_NAME_KEY: Final = "authentication.kubernetes.io/pod-name"
POD_UID_KEY: Final = "authentication.kubernetes.io/pod-uid"
NODE_NAME_KEY: Final = "authentication.kubernetes.io/node-name"
NODE_UID_KEY: Final = "authentication.kubernetes.io/node-uid"
WEBHOOK_NAME_KEYS: Final = {
    "ValidatingWebhookConfiguration": "authentication.kubernetes.io/validatingwebhookconfiguration-name",
    "MutatingWebhookConfiguration": "authentication.kubernetes.io/mutatingwebhookconfiguration-name",
}
WEBHOOK_UID_KEYS: Final = {
    "ValidatingWebhookConfiguration": "authentication.kubernetes.io/validatingwebhookconfiguration-uid",
    "MutatingWebhookConfiguration": "authentication.kubernetes.io/mutatingwebhookconfiguration-uid",
}
ATTESTATION_KEY_PREFIX: Final = "attestation.authentication.kubernetes.io/"


def make_username(namespace: str, name: str) -> str:
    """Return the user name of a service account, `system:serviceaccount:NAMESPACE:NAME`."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def make_group_names(namespace: str) -> tuple[str, ...]:
    """Return the groups of a service account: of all service accounts, and of those in its namespace."""
    return ALL_SERVICE_ACCOUNTS, f"{ALL_SERVICE_ACCOUNTS}:{namespace}"


def make_user(namespace: str, name: str, uid: str, extra: dict[str, tuple[str, ...]] | None = None) -> UserInfo:
    """Return the user of a service account, with its groups.

    Args:
        namespace: the namespace of the account.
        name: its name.
        uid: its uid.
        extra: further attributes of the user; None for none.
    """
    return UserInfo(make_username(namespace, name), uid, make_group_names(namespace), extra or {})


def split_username(username: str) -> tuple[str, str] | None:
    """Return the namespace and name in `system:serviceaccount:NAMESPACE:NAME`.

    Returns:
        None for any other user name, and if the namespace or the name is not valid.
    """
    parts = username.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
    if not username.startswith(SERVICE_ACCOUNT_PREFIX) or len(parts) != 2:
        return None
    namespace, name = parts
    if is_dns1123_label(namespace) or is_dns1123_subdomain(name):
        return None
    return namespace, name


def node_name(username: str) -> str:
    """Return the node name in `system:node:NAME`; "" for any other user name, or if the node name is not valid."""
    name = username.removeprefix(NODE_PREFIX)
    if name == username or name_is_dns_subdomain(name, False):
        return ""
    return name
