"""`AuthorizerChain`: the configured authorizers in order, rebuilt when the configuration file changes.

A reload adds and removes webhooks; the other authorizers are kept.

Upstream: pkg/kubeapiserver/authorizer/{config,reload}.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from tetrapod.auth.abac.policies import AbacAuthorizer, read_policies
from tetrapod.auth.authorizers.configuration import AuthorizationOptions, load_configuration, name_errors
from tetrapod.auth.authorizers.validation import validate
from tetrapod.generic.authentication.shared_cache import SharedCache
from tetrapod.generic.authorization.interface import Authorizer, RuleResolver
from tetrapod.generic.authorization.union import (
    AlwaysAllow,
    AlwaysDeny,
    Named,
    PrivilegedGroup,
    UnionAuthorizer,
    UnionRuleResolver,
)
from tetrapod.generic.authorization.webhook import Conditions, WebhookAuthorizer, WebhookOptions
from tetrapod.generic.configuration.metrics import ReloadMetrics
from tetrapod.generic.configuration.watching import watch
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.webhook.kubeconfig import read_kubeconfig
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.field import aggregate
from tetrapod.machinery.golang.durations import parse_duration
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

RELOADS: Final = ReloadMetrics("authorization")


class ResolvingAuthorizer(Authorizer, RuleResolver, Protocol):
    """An authorizer that can also list the rules of a user."""


class AuthorizerChain:
    """The chain of authorizers.

    Attributes:
        authorizer: the union of all authorizers, the same object across reloads.
        resolver: the union of the rule resolvers, the same object across reloads.

    Args:
        options: the configuration.
        preceding: authorizers of this server that are asked before the configured ones.
        built_in: the authorizers that need objects of the service, by type: Node and RBAC.
        pool: sends requests to webhooks.
        shared: a cache of webhook responses that replicas share, or None.

    Raises:
        ValueError: the configuration is invalid; the text is upstream's.
    """

    def __init__(
        self,
        options: AuthorizationOptions,
        preceding: Sequence[Named],
        built_in: Mapping[str, ResolvingAuthorizer],
        pool: BackendPool,
        shared: SharedCache | None = None,
    ) -> None:
        self._options, self._pool, self._shared = options, pool, shared
        self._preceding = (*preceding, Named("", PrivilegedGroup()))
        self._config, self._data = options.config, options.data
        self._loaded = self._config  # the last valid configuration, which is not in use if a webhook cannot be made
        self._known: dict[str, ResolvingAuthorizer] = {
            **built_in,
            "AlwaysAllow": AlwaysAllow(),
            "AlwaysDeny": AlwaysDeny(),
        }
        self._types = [authorizer["type"] for authorizer in self._config.get("authorizers") or ()]
        self.authorizer = UnionAuthorizer(())
        self.resolver = UnionRuleResolver(())
        try:
            if "ABAC" in self._types:
                self._known["ABAC"] = AbacAuthorizer(read_policies(options.policy_file))
            self._use(self._config)
        except ValueError as error:
            raise ValueError(f"invalid authorization config: {error}") from None

    def _use(self, config: Object) -> None:
        pairs = [(authorizer, self._made(authorizer)) for authorizer in config["authorizers"]]
        self.authorizer.replace((*self._preceding, *(Named(a["name"], made, a["type"]) for a, made in pairs)))
        self.resolver.replace([made for _, made in pairs])
        self._config = config

    def _made(self, authorizer: Object) -> ResolvingAuthorizer:
        kind = authorizer["type"]
        if kind == "Webhook":
            return _webhook(authorizer, self._pool, self._shared)
        if kind not in self._known or (kind not in self._types and kind in ("Node", "RBAC", "ABAC")):
            raise ValueError(f"authorizer type {kind} is not allowed if it was not enabled at initial server startup")
        return self._known[kind]

    @property
    def decided_by_rules(self) -> bool:
        """Whether an ALLOW of RBAC is final: RBAC is configured, and no webhook that might deny comes before it."""
        types = [authorizer["type"] for authorizer in self._config["authorizers"]]
        return "RBAC" in types and "Webhook" not in types[: types.index("RBAC")]

    @property
    def may_change(self) -> bool:
        """Whether the configuration comes from a file, which is reloaded when it changes."""
        return bool(self._options.file)

    def start(self, lifecycle: Lifecycle) -> None:
        """Start watching the configuration file in the background, if there is one."""
        if self._options.file:
            RELOADS.applied(self._data)
            lifecycle.background("authorization-config", watch(self._options.file, self.reload))

    async def reload(self) -> None:
        """Read the configuration file, and rebuild the chain if its authorizers have changed and are valid.

        Otherwise the current chain is kept. Failures are logged and counted. A file that differs only in comments, in
        its form or in its apiVersion is not a reload.
        """
        try:
            data = await asyncio.to_thread(Path(self._options.file).read_text)
        except (OSError, UnicodeDecodeError) as error:
            log.error("reloading authorization config: %s", error)
            RELOADS.failed()
            return
        if data == self._data:
            return
        self._data = data
        try:
            required = {kind for kind in self._types if kind != "Webhook"}
            config = await asyncio.to_thread(checked, data.encode(), required)
            if config["authorizers"] == self._loaded["authorizers"]:
                return
            self._loaded = config
            self._use(config)
        except ValueError as error:
            log.error("reloading authorization config: %s", error)
            RELOADS.failed()
            return
        log.info("reloaded authz config")
        RELOADS.succeeded(data)


def checked(data: bytes, required: set[str] | frozenset[str] = frozenset()) -> Object:
    """Decode and validate a configuration file, and return the configuration with its defaults.

    Args:
        required: types of authorizers that it must contain.

    Raises:
        ValueError: the file cannot be decoded, or the configuration is invalid. The text lists all errors of
            `validate`. If `validate` finds no error, it lists those about names and missing types.
    """
    config = load_configuration(data)
    if errors := validate(config):
        raise ValueError(aggregate(errors))
    if texts := name_errors(config, required):
        raise ValueError(aggregate_errors(texts))
    return config


def _webhook(authorizer: Object, pool: BackendPool, shared: SharedCache | None) -> WebhookAuthorizer:
    webhook: Object = authorizer["webhook"]
    file = webhook["connectionInfo"].get("kubeConfigFile")
    if not file:
        raise ValueError("connectionInfo.type InClusterConfig is for other API servers: this one would ask itself")
    options = WebhookOptions(
        target=read_kubeconfig(file),
        name=authorizer["name"],
        version=webhook["subjectAccessReviewVersion"],
        timeout=parse_duration(webhook["timeout"]),
        authorized_ttl=parse_duration(webhook["authorizedTTL"]) if webhook["cacheAuthorizedRequests"] else 0,
        unauthorized_ttl=parse_duration(webhook["unauthorizedTTL"]) if webhook["cacheUnauthorizedRequests"] else 0,
        deny_on_failure=webhook["failurePolicy"] == "Deny",
        conditions=_conditions(webhook.get("matchConditions") or [], authorizer["name"]),
    )
    return WebhookAuthorizer(options, pool, shared)


def _conditions(conditions: list[Object], name: str) -> Conditions | None:
    if not conditions:
        return None
    # only imported on demand, because it imports CEL
    from tetrapod.auth.authorizers.match_conditions import MatchConditions, compile_condition

    return MatchConditions([compile_condition(condition["expression"]) for condition in conditions], name)
