"""The modes of impersonation: associated-node, arbitrary-node, serviceaccount, user-info, and the legacy mode.

A constrained mode makes two authorization checks: whether the requestor may make this request while impersonating
(`impersonate-on:<mode>:<verb>`), and whether it may impersonate this user (`impersonate:<mode>`). The legacy mode
only checks `impersonate`. Upstream's 10 s cache is omitted: our authorizer is as cheap as a cache lookup, and revoked
permissions take effect at once.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation/mode.go
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from tetrapod.generic.authentication.serviceaccount import (
    NODE_NAME_KEY,
    NODES_GROUP,
    make_group_names,
    node_name,
    split_username,
)
from tetrapod.generic.authorization.interface import Attributes, Authorizer, Decision
from tetrapod.generic.authorization.message import forbidden_error
from tetrapod.machinery.domain_paths import domain_prefixed_path
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.user import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, ANONYMOUS, SYSTEM_MASTERS, UserInfo

_GROUP: Final = "authentication.k8s.io"
_ASSOCIATED_NODE_KEYS: Final = "authentication.kubernetes.io/associated-node-keys"
_BATCH_CHECK_FROM: Final = 4
"""From this number of values on, a single check for all of them is tried first."""


class Impersonated(NamedTuple):
    """The result of an impersonation.

    Attributes:
        user: the user as whom the request continues.
        constraint: the authorized verb, for the audit log; "" for the legacy mode.
    """

    user: UserInfo
    constraint: str


class Mode(Protocol):
    """A mode of impersonation. Each concerns some users, such as nodes; `check` returns None for all others."""

    async def check(self, target: UserInfo, attributes: Attributes) -> Impersonated | None:
        """Return the impersonated user, or None if the mode does not apply to `target`.

        Args:
            target: the user that the headers name.
            attributes: the request, with the requestor as its user.

        Raises:
            StatusError: 403, the mode applies, but the requestor may not impersonate.
        """
        ...


def all_modes(authorizer: Authorizer) -> list[Mode]:
    """Return the modes in the order in which upstream tries them. All use this authorizer."""
    return [
        AssociatedNodeMode(authorizer),
        ConstrainedMode(authorizer, "arbitrary-node", lambda target: _bare(target) and bool(node_name(target.name))),
        ConstrainedMode(
            authorizer, "serviceaccount", lambda target: _bare(target) and split_username(target.name) is not None
        ),
        ConstrainedMode(
            authorizer, "user-info", lambda target: not node_name(target.name) and split_username(target.name) is None
        ),
        ClassicMode(authorizer),
    ]


class ConstrainedMode:
    """A constrained mode: it authorizes the request itself (`impersonate-on:…`), then each value of the target user.

    The values are the name, the uid, the groups and the extra values (`impersonate:<mode>`).

    Args:
        authorizer: decides the checks.
        mode: the name in the verbs, such as `user-info`.
        applies: returns whether the mode applies to the user that the headers name.
    """

    def __init__(self, authorizer: Authorizer, mode: str, applies: Callable[[UserInfo], bool]) -> None:
        self._authorizer = authorizer
        self._mode = mode
        self._applies = applies

    async def check(self, target: UserInfo, attributes: Attributes) -> Impersonated | None:
        if not self._applies(target):
            return None
        await _require(self._authorizer, attributes._replace(verb=f"impersonate-on:{self._mode}:{attributes.verb}"))
        verb = f"impersonate:{self._mode}"
        return Impersonated(
            await _Checks(self._authorizer, verb, attributes.user, constrained=True).authorize_all(target), verb
        )


class AssociatedNodeMode:
    """The mode in which a service account impersonates the node on which its pod runs.

    As upstream, the authorizer gets a reduced requestor, whose extra has one entry with the sorted keys of the
    requestor's extra. It gets "*" instead of the name of the node.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def check(self, target: UserInfo, attributes: Attributes) -> Impersonated | None:
        requestor = attributes.user
        node = node_name(target.name)
        if not _bare(target) or not node or split_username(requestor.name) is None:
            return None
        if requestor.extra.get(NODE_NAME_KEY) != (node,):
            return None
        reduced = replace(requestor, extra={_ASSOCIATED_NODE_KEYS: tuple(sorted(requestor.extra))})
        verb = f"impersonate-on:associated-node:{attributes.verb}"
        await _require(self._authorizer, attributes._replace(user=reduced, verb=verb))
        checks = _Checks(self._authorizer, "impersonate:associated-node", reduced, constrained=True)
        await checks.check_value("nodes", "*")
        return Impersonated(_with_implied_group(replace(target, groups=(NODES_GROUP,))), checks.verb)


class ClassicMode:
    """The legacy mode, which applies to every user and checks the verb `impersonate`."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def check(self, target: UserInfo, attributes: Attributes) -> Impersonated | None:
        return Impersonated(
            await _Checks(self._authorizer, "impersonate", attributes.user, constrained=False).authorize_all(target), ""
        )


class _Checks:
    """The authorization checks for a user's name, uid, groups and extra: one for each value, in upstream's order.

    In constrained modes, many groups or extra values are allowed by one check for `*`, if it succeeds.

    Args:
        authorizer: decides the checks.
        verb: the verb to check.
        requestor: the user who impersonates.
        constrained: whether the rules of the constrained modes apply; False for the legacy mode.
    """

    def __init__(self, authorizer: Authorizer, verb: str, requestor: UserInfo, *, constrained: bool) -> None:
        self.verb = verb
        self._authorizer = authorizer
        self._requestor = requestor
        self._constrained = constrained
        self._user_group = _GROUP if constrained else ""

    async def authorize_all(self, target: UserInfo) -> UserInfo:
        """Check all values of `target` and return it with the groups that its name implies.

        Raises:
            StatusError: 403, a value is forbidden.
        """
        groups = await self._check_name(target)
        if target.uid:
            await self.check_value("uids", target.uid, group=_GROUP)
        await self._check_groups(target.groups)
        await self._check_extra(target.extra)
        return _with_implied_group(replace(target, groups=groups))

    async def _check_name(self, target: UserInfo) -> tuple[str, ...]:
        """Check the name and return the groups of the impersonated user.

        A service account without requested groups gets those of service accounts. A node gets system:nodes, but not in
        the legacy mode.

        Raises:
            StatusError: 403, the requestor may not impersonate the name.
        """
        account = split_username(target.name)
        if account is not None:
            namespace, name = account
            await self.check_value("serviceaccounts", name, namespace=namespace)
            return target.groups or make_group_names(namespace)
        node = node_name(target.name) if self._constrained else ""
        if node:
            await self.check_value("nodes", node)
            return (NODES_GROUP,)
        await self.check_value("users", target.name)
        return target.groups

    async def _check_groups(self, groups: tuple[str, ...]) -> None:
        if not groups:
            return
        if self._constrained:
            if "" in groups:
                raise forbidden_error(
                    self._attributes("groups", ""), "impersonating the empty string group is not allowed"
                )
            if SYSTEM_MASTERS in groups:
                attributes = self._attributes("groups", SYSTEM_MASTERS)
                raise forbidden_error(attributes, "impersonating the system:masters group is not allowed")
            if len(groups) >= _BATCH_CHECK_FROM and await self._allowed(self._attributes("groups", "*")):
                return
        for group in groups:
            await self.check_value("groups", group)

    async def _check_extra(self, extra: dict[str, tuple[str, ...]]) -> None:
        if not extra:
            return
        if self._constrained:
            error = extra_error(extra)
            if error:
                raise forbidden_error(self._attributes("userextras", "", group=_GROUP), error)
            if sum(map(len, extra.values())) >= _BATCH_CHECK_FROM:
                attributes = self._attributes("userextras", "*", group=_GROUP, subresource="*")
                if await self._allowed(attributes):
                    return
        for key, texts in extra.items():
            for text in texts:
                await self.check_value("userextras", text, group=_GROUP, subresource=key)

    async def check_value(
        self, resource: str, name: str, *, group: str | None = None, namespace: str = "", subresource: str = ""
    ) -> None:
        """Check whether the requestor may use the verb on a resource of impersonation, such as `users` or `groups`.

        Args:
            resource: the plural name.
            name: the value to impersonate, such as the user name.
            group: the API group of the resource; None for that of `users`: authentication.k8s.io in constrained modes,
                else "".
            namespace: the namespace of a service account; else "".
            subresource: the key of an extra value; else "".

        Raises:
            StatusError: 403, the requestor may not use it.
        """
        await _require(
            self._authorizer,
            self._attributes(resource, name, group=group, namespace=namespace, subresource=subresource),
        )

    def _attributes(
        self, resource: str, name: str, *, group: str | None = None, namespace: str = "", subresource: str = ""
    ) -> Attributes:
        return Attributes(
            self._requestor,
            self.verb,
            namespace=namespace,
            group=self._user_group if group is None else group,
            version="v1",
            resource=resource,
            subresource=subresource,
            name=name,
            resource_request=True,
        )

    async def _allowed(self, attributes: Attributes) -> bool:
        return (await self._authorizer.authorize(attributes)).decision is Decision.ALLOW


async def _require(authorizer: Authorizer, attributes: Attributes) -> None:
    decision, reason, error = await authorizer.authorize(attributes)
    if decision is not Decision.ALLOW:
        raise forbidden_error(attributes, ": ".join(text for text in (error, reason) if text))


def _with_implied_group(user: UserInfo) -> UserInfo:
    if user.name == ANONYMOUS.name:
        implied = ALL_UNAUTHENTICATED
    elif ALL_UNAUTHENTICATED in user.groups:
        return user
    else:
        implied = ALL_AUTHENTICATED
    return user if implied in user.groups else replace(user, groups=(*user.groups, implied))


def _bare(user: UserInfo) -> bool:
    """Return whether the user has only a name. Then the server determines the groups."""
    return not user.uid and not user.groups and not user.extra


def extra_error(extra: dict[str, tuple[str, ...]]) -> str:
    """Return the reason why constrained modes reject these extra values, or "" if they are accepted."""
    for key, texts in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        errors = domain_prefixed_path(key, "extra.key")
        if errors:
            return f"impersonating an invalid key in extra is not allowed: {aggregate_errors(errors)}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {go_quote(key)}"
        if "" in texts:
            return "impersonating the empty string value in extra is not allowed"
    return ""
