"""The audit policy: the first rule that matches a request gives its level and the stages to omit.

Upstream: k8s.io/apiserver/pkg/apis/audit/types.go, pkg/audit/policy/checker.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import UserInfo


class Level(IntEnum):
    """How much is recorded of a request; each level includes the ones before it."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


LEVELS: Final = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}
LEVEL_NAMES: Final = {level: name for name, level in LEVELS.items()}

REQUEST_RECEIVED: Final = "RequestReceived"
RESPONSE_STARTED: Final = "ResponseStarted"
RESPONSE_COMPLETE: Final = "ResponseComplete"
PANIC: Final = "Panic"
STAGES: Final = (REQUEST_RECEIVED, RESPONSE_STARTED, RESPONSE_COMPLETE, PANIC)


class Auditing(NamedTuple):
    """The decision of the policy for one request.

    Attributes:
        level: how much is recorded.
        omit_stages: the stages, such as RequestReceived, of which no event is sent.
        omit_managed_fields: whether managedFields are removed from recorded objects.
    """

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


@dataclass(frozen=True, slots=True)
class GroupResources:
    """Resources of an API group ("*": every group).

    Entries of `resources` have the forms `pods`, `pods/log`, `pods/*`, `*/scale` and `*`; no entries mean all resources
    of the group. `names` restrict them to some objects; no names mean all.
    """

    group: str = ""
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def matches(self, info: RequestInfo) -> bool:
        """Return whether the request is for one of these resources."""
        if self.group not in (info.api_group, "*"):
            return False
        if not self.resources:
            return True
        if self.names and info.name not in self.names:
            return False
        resource, subresource = info.resource, info.subresource
        full = f"{resource}/{subresource}" if subresource else resource
        wanted = {full, "*", f"{resource}/*"}  # as upstream, `pods/*` also matches pods themselves
        if subresource:
            wanted.add(f"*/{subresource}")
        return not wanted.isdisjoint(self.resources)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the policy; every field that is not empty must match the request.

    Attributes:
        auditing: the decision for requests that match.
        users: user names.
        groups: groups of the user, of which one must match.
        verbs: verbs.
        resources: resources of which one must match; a path such as /healthz matches none.
        namespaces: namespaces; "" for cluster-scoped requests.
        urls: paths such as "/healthz*", of which one must match; a resource request matches none.
    """

    auditing: Auditing
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    resources: tuple[GroupResources, ...] = ()
    namespaces: frozenset[str] = frozenset()
    urls: tuple[str, ...] = ()

    def matches(self, user: UserInfo | None, info: RequestInfo) -> bool:
        """Return whether the rule matches the request.

        Args:
            user: the authenticated user, or None if authentication failed; then a rule for users or groups does not
                match.
        """
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.groups and (user is None or self.groups.isdisjoint(user.groups)):
            return False
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return info.is_resource_request and self._matches_resource(info)
        if self.urls:
            return not info.is_resource_request and any(_path_matches(info.path, url) for url in self.urls)
        return True

    def _matches_resource(self, info: RequestInfo) -> bool:
        if self.namespaces and info.namespace not in self.namespaces:
            return False
        return not self.resources or any(resources.matches(info) for resources in self.resources)


def _path_matches(path: str, url: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


_UNWANTED: Final = Auditing(Level.NONE)


class Policy:
    """The rules of an audit policy.

    Args:
        rules: the rules, of which the first that matches decides.
        otherwise: the decision for requests that no rule matches. By default its level is `Level.NONE`: nothing is
            recorded.
    """

    def __init__(self, rules: Sequence[Rule], otherwise: Auditing = _UNWANTED) -> None:
        self.rules = tuple(rules)
        self._otherwise = otherwise

    def evaluate(self, user: UserInfo | None, info: RequestInfo) -> Auditing:
        """Return the decision of the first rule that matches, or the policy's default if none matches.

        `user` is None if authentication failed.
        """
        for rule in self.rules:
            if rule.matches(user, info):
                return rule.auditing
        return self._otherwise
