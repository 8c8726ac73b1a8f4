"""The variable `authorizer` and the checks that expressions build from it.

Upstream: k8s.io/apiserver/pkg/cel/library/authz.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.signatures import Functions
from tetrapod.machinery.cel.values import Special
from tetrapod.machinery.names import name_is_dns_label, name_is_dns_subdomain

AUTHORIZER: Final = types.object_type("kubernetes.authorization.Authorizer")
PATH_CHECK: Final = types.object_type("kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = types.object_type("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = types.object_type("kubernetes.authorization.ResourceCheck")
DECISION: Final = types.object_type("kubernetes.authorization.Decision")


@dataclass(frozen=True)
class CheckAttributes:
    """The attributes of an authorization check of a path, or of a resource (`path` is empty).

    `user` is the user that `AuthorizerValue` was created with.
    """

    user: Any
    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


class _Receiver(Special):
    """A value that has functions but no fields, and is equal only to itself."""

    def equals(self, other: Any) -> bool:
        return bool(self == other)


@dataclass(frozen=True)
class Decision(_Receiver):
    """The result of a check. An empty `error` means that the check did not fail."""

    allowed: bool
    reason: str = ""
    error: str = ""
    cel_type = DECISION


Decide = Callable[[CheckAttributes], Decision]
"""A function that authorizes a check. It may raise Interrupt."""


@dataclass(frozen=True)
class AuthorizerValue(_Receiver):
    """An authorizer for one user.

    `decide` is called at each `check`. `service_account` returns the user of a service account, given its namespace and
    name.
    """

    decide: Decide
    user: Any
    service_account: Callable[[str, str], Any] | None = None
    cel_type = AUTHORIZER

    def resource_check(
        self, group: str, resource: str, subresource: str = "", namespace: str = "", name: str = ""
    ) -> ResourceCheck:
        """Return the value of `authorizer.requestResource`."""
        attributes = CheckAttributes(self.user, "", "", group, resource, subresource, namespace, name)
        return ResourceCheck(self, attributes)


@dataclass(frozen=True)
class PathCheck(_Receiver):
    """A check of a path that has no verb yet."""

    authorizer: AuthorizerValue
    path: str
    cel_type = PATH_CHECK


@dataclass(frozen=True)
class GroupCheck(_Receiver):
    """A check of an API group that has no resource yet."""

    authorizer: AuthorizerValue
    group: str
    cel_type = GROUP_CHECK


@dataclass(frozen=True)
class ResourceCheck(_Receiver):
    """A check of a resource that has no verb yet."""

    authorizer: AuthorizerValue
    asked: CheckAttributes
    cel_type = RESOURCE_CHECK


def _path(authorizer: AuthorizerValue, path: str) -> PathCheck:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return PathCheck(authorizer, path)


def _service_account(authorizer: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if name_is_dns_subdomain(name, False):
        raise EvaluationError("Invalid service account name")
    if name_is_dns_label(namespace, False):
        raise EvaluationError("Invalid service account namespace")
    make = authorizer.service_account
    return replace(
        authorizer, user=f"system:serviceaccount:{namespace}:{name}" if make is None else make(namespace, name)
    )


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(check.authorizer, CheckAttributes(check.authorizer.user, "", "", check.group, resource))


def _with(name: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    return lambda check, value: replace(check, asked=replace(check.asked, **{name: value}))


def _check_path(check: PathCheck, verb: str) -> Decision:
    return check.authorizer.decide(CheckAttributes(check.authorizer.user, verb, check.path))


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    return check.authorizer.decide(replace(check.asked, verb=verb))


FUNCTIONS: Final[Functions] = {
    "path": [((AuthorizerValue, str), _path)],
    "group": [((AuthorizerValue, str), GroupCheck)],
    "serviceAccount": [((AuthorizerValue, str, str), _service_account)],
    "resource": [((GroupCheck, str), _resource)],
    "subresource": [((ResourceCheck, str), _with("subresource"))],
    "namespace": [((ResourceCheck, str), _with("namespace"))],
    "name": [((ResourceCheck, str), _with("name"))],
    "fieldSelector": [((ResourceCheck, str), _with("field_selector"))],
    "labelSelector": [((ResourceCheck, str), _with("label_selector"))],
    "check": [((PathCheck, str), _check_path), ((ResourceCheck, str), _check_resource)],
    "allowed": [((Decision,), lambda decision: decision.allowed)],
    "reason": [((Decision,), lambda decision: decision.reason)],
    "error": [((Decision,), lambda decision: decision.error)],
    "errored": [((Decision,), lambda decision: bool(decision.error))],
}
