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
    """The attributes of an authorization check: of a path, or of a resource if `path` is "".

    Attributes:
        user: the user of the `AuthorizerValue` from which the expression built the check, in any form that the
            authorizer understands.
        verb: the verb, such as "get".
        path: the path; "" for a resource.
        group: the API group; "" for the core group.
        resource: the plural name; "" for a path.
        subresource: the subresource; "" for none.
        namespace: the namespace; "" for cluster-scoped resources and for all namespaces.
        name: the name of the object; "" for all objects.
        field_selector: the text of the selector; "" for none.
        label_selector: the text of the selector; "" for none.
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
    """The base class of values that have functions but no fields, and are compared by their contents."""

    def equals(self, other: Any) -> bool:
        return bool(self == other)


@dataclass(frozen=True)
class Decision(_Receiver):
    """The result of a check. `error` is "" unless the authorization itself failed.

    Attributes:
        allowed: whether the request is allowed; False also means no opinion.
        reason: the authorizer's explanation.
        error: the text of its error.
    """

    allowed: bool
    reason: str = ""
    error: str = ""
    cel_type = DECISION


Decide = Callable[[CheckAttributes], Decision]
"""A function that authorizes a check. It may raise Interrupt."""


@dataclass(frozen=True)
class AuthorizerValue(_Receiver):
    """The value of the variable `authorizer`: an authorizer for one user.

    Args:
        decide: authorizes the attributes of a check; called at each `check`.
        user: the user, in any form that `decide` understands.
        service_account: returns the user of a service account, given its namespace and name. None means that the user
            is the name `system:serviceaccount:NAMESPACE:NAME`.
    """

    decide: Decide
    user: Any
    service_account: Callable[[str, str], Any] | None = None
    cel_type = AUTHORIZER

    def resource_check(
        self, group: str, resource: str, subresource: str = "", namespace: str = "", name: str = ""
    ) -> ResourceCheck:
        """Return a check of a resource without a verb, such as the value of `authorizer.requestResource`.

        Args:
            group: the API group; "" for the core group.
            resource: the plural name of the resource.
            subresource: the subresource; "" for none.
            namespace: the namespace; "" for cluster-scoped resources and for all namespaces.
            name: the name of the object; "" for all objects.
        """
        attributes = CheckAttributes(self.user, "", "", group, resource, subresource, namespace, name)
        return ResourceCheck(self, attributes)


@dataclass(frozen=True)
class PathCheck(_Receiver):
    """The value of `authorizer.path(…)`: a check of a path without a verb, which `check` adds."""

    authorizer: AuthorizerValue
    path: str
    cel_type = PATH_CHECK


@dataclass(frozen=True)
class GroupCheck(_Receiver):
    """The value of `authorizer.group(…)`: a check of an API group without a resource, which `resource` adds."""

    authorizer: AuthorizerValue
    group: str
    cel_type = GROUP_CHECK


@dataclass(frozen=True)
class ResourceCheck(_Receiver):
    """The value of `resource(…)`: a check of a resource without a verb, which `check` adds.

    Attributes:
        authorizer: the authorizer that decides.
        attributes: the attributes of the check.
    """

    authorizer: AuthorizerValue
    attributes: CheckAttributes
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
    return lambda check, value: replace(check, attributes=replace(check.attributes, **{name: value}))


def _check_path(check: PathCheck, verb: str) -> Decision:
    return check.authorizer.decide(CheckAttributes(check.authorizer.user, verb, check.path))


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    return check.authorizer.decide(replace(check.attributes, verb=verb))


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
