"""`WebhookBinding`: binds tokens to webhook configurations (feature gate APIServerWebhookAuthenticationToken).

With such a token, an API server authenticates to an admission webhook. The token's audience is the address of the
webhook, and its attestation names the API group of the objects that it may send.

Upstream: pkg/registry/core/serviceaccount/storage/token.go, getAndValidateWebhookConfig; pkg/serviceaccount/claims.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tetrapod.auth.tokens.bound_objects import Objects
from tetrapod.generic.admission.webhook.hooks import MUTATING, VALIDATING
from tetrapod.generic.authentication.serviceaccount import make_user
from tetrapod.generic.authorization.interface import Attributes, Authorizer, Decision
from tetrapod.generic.authorization.message import forbidden_status
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import bad_request, forbidden
from tetrapod.machinery.timestamps import now, parse

GATE: Final = "APIServerWebhookAuthenticationToken"
ATTESTATION: Final = "admissionReviewAPIGroups"
CONFIGURATIONS: Final[Mapping[str, StorageConfig]] = {config.kind: config for config in (VALIDATING, MUTATING)}
"""The storage of the configurations, by kind."""
LONGEST_SECONDS: Final = 10 * 60
"""The longest lifetime of a token that is bound to a webhook configuration."""
_ALL_GROUPS: Final = "*"


class WebhookBinding:
    """Decides whether a token may be bound to a webhook configuration.

    Args:
        objects: reads the configurations.
        authorizer: authorizes the attestation.
        audiences: the audiences of this server, for which such tokens are not issued.
    """

    def __init__(self, objects: Objects, authorizer: Authorizer, audiences: Sequence[str]) -> None:
        self._objects, self._authorizer, self._audiences = objects, authorizer, frozenset(audiences)

    async def configuration(self, account: Object, kind: str, name: str, spec: Object) -> Object:
        """Return the configuration to which a token is to be bound. `spec` is valid; its lifetime is limited here.

        Args:
            account: the service account.
            kind: the kind of the configuration.
            name: the name of the configuration.
            spec: the spec of the TokenRequest, with one audience and one attestation.

        Raises:
            StatusError: 400 for an audience of this server; 403 if the account may not attest the API group, or if no
                webhook of the configuration has the audience and receives objects of the group.
        """
        if not self._audiences.isdisjoint(spec["audiences"]):
            raise bad_request("api server audiences are invalid for webhook token requests")
        (group,), (audience,) = spec["attestations"][ATTESTATION], spec["audiences"]
        spec["expirationSeconds"] = min(spec["expirationSeconds"], LONGEST_SECONDS)
        await self._authorize(account, group)
        configuration = await self._objects.find(CONFIGURATIONS[kind], "", name)
        if configuration is None or _is_deleted(configuration) or not _serves(configuration, audience, group):
            account_name = account["metadata"]["name"]
            raise forbidden(GroupResource("", "serviceaccounts/token"), account_name, "token request denied")
        return configuration

    async def _authorize(self, account: Object, group: str) -> None:
        """Check that the account may attest an API group, which is authorized as a name of a resource.

        Raises:
            StatusError: 403, it may not.
        """
        meta = account["metadata"]
        attributes = Attributes(
            make_user(meta["namespace"], meta["name"], meta["uid"]),
            "attest",
            group="authentication.k8s.io",
            version="*",
            resource=ATTESTATION,
            name=group,
            resource_request=True,
        )
        result = await self._authorizer.authorize(attributes)
        if result.decision is not Decision.ALLOW:
            raise forbidden_status(attributes, ": ".join(text for text in (result.error, result.reason) if text))


def _is_deleted(configuration: Object) -> bool:
    moment = configuration["metadata"].get("deletionTimestamp")
    return bool(moment) and parse(moment) < now()


def _serves(configuration: Object, audience: str, group: str) -> bool:
    """Return whether one webhook has the audience as its address, and a rule for the API group.

    For the group `*`, which means all groups, neither is checked. Such a token may have any audience.
    """
    return group == _ALL_GROUPS or any(
        _receives(webhook.get("rules") or (), group) and audience in _addresses(webhook.get("clientConfig") or {})
        for webhook in configuration.get("webhooks") or ()
    )


def _receives(rules: Iterable[Object], group: str) -> bool:
    return any(rule_group in (_ALL_GROUPS, group) for rule in rules for rule_group in rule.get("apiGroups") or ())


def _addresses(client_config: Object) -> list[str]:
    """Return the URL of a webhook: that of its configuration, or `https://NAME.NAMESPACE.svc:PORT/PATH` of its Service.

    A webhook has one of them. The list is empty for a malformed configuration.
    """
    addresses = []
    if (url := client_config.get("url")) is not None:
        addresses.append(url)
    if (service := client_config.get("service")) is not None:
        port = 443 if service.get("port") is None else service["port"]
        path = "/" if service.get("path") is None else service["path"]
        root = "" if path.startswith("/") else "/"
        addresses.append(f"https://{service.get('name', '')}.{service.get('namespace', '')}.svc:{port}{root}{path}")
    return addresses
