"""`AuthorizerVariables`: the `authorizer` variables of CEL expressions, over an asynchronous authorizer.

CEL is evaluated synchronously. An expression that needs a decision which is not known yet is interrupted (`Interrupt`).
The caller then requests the decision and evaluates the expression again. Decisions are cached for the request.
Upstream: staging/src/k8s.io/apiserver/pkg/cel/library/authz.go, pkg/admission/plugin/authorizer
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.authentication.serviceaccount import make_group_names, make_username
from tetrapod.generic.authorization.interface import Attributes as AuthorizationAttributes
from tetrapod.generic.authorization.interface import AuthorizationResult, Authorizer
from tetrapod.generic.authorization.interface import Decision as AuthorizationDecision
from tetrapod.generic.authorization.selector_attributes import field_requirements, label_requirements
from tetrapod.machinery.cel.errors import Interrupt
from tetrapod.machinery.cel.library.authorizer import AuthorizerValue, CheckAttributes, Decision
from tetrapod.machinery.user import ALL_AUTHENTICATED, UserInfo


class _DecisionNeeded(Interrupt):
    def __init__(self, check: CheckAttributes) -> None:
        super().__init__("an authorizer's decision is needed")
        self.check = check


class AuthorizerVariables:
    """The CEL variables `authorizer` and `authorizer.requestResource` of one request, and the results of their checks.

    Args:
        authorizer: makes the authorization checks of the expressions.
        attributes: the request, which determines the user and the requestResource.
    """

    def __init__(self, authorizer: Authorizer, attributes: Attributes) -> None:
        self._authorizer = authorizer
        self._attributes = attributes
        self._results: dict[CheckAttributes, AuthorizationResult] = {}

    @cached_property
    def bindings(self) -> Mapping[str, Any]:
        """The CEL values of the variables `authorizer` and `authorizer.requestResource`, by these names."""
        attributes = self._attributes
        value = AuthorizerValue(self._decide, attributes.user, _service_account)
        group, _, resource = attributes.resource
        own = value.resource_check(group, resource, attributes.subresource, attributes.namespace, attributes.name)
        return {"authorizer": value, "authorizer.requestResource": own}

    def _decide(self, check: CheckAttributes) -> Decision:
        result = self._results.get(check)
        if result is None:
            raise _DecisionNeeded(check)
        return Decision(result.decision is AuthorizationDecision.ALLOW, result.reason, result.error)

    async def settle(self, interrupt: Interrupt) -> None:
        """Make the authorization check for which an expression was interrupted, and keep its result for the request.

        The caller then evaluates the expression again.

        Args:
            interrupt: the exception that the evaluation of the expression raised.

        Raises:
            StatusError: 503, a service that the decision depends on is unavailable.
        """
        assert isinstance(interrupt, _DecisionNeeded)
        check = interrupt.check
        self._results[check] = await self._authorizer.authorize(_authorization_attributes(check))


def _service_account(namespace: str, name: str) -> UserInfo:
    return UserInfo(make_username(namespace, name), groups=(*make_group_names(namespace), ALL_AUTHENTICATED))


def _authorization_attributes(check: CheckAttributes) -> AuthorizationAttributes:
    if check.path:
        return AuthorizationAttributes(check.user, check.verb, path=check.path)
    return AuthorizationAttributes(
        check.user,
        check.verb,
        check.namespace,
        check.group,
        "*",
        check.resource,
        check.subresource,
        check.name,
        resource_request=True,
        field_requirements=field_requirements(check.field_selector),
        label_requirements=label_requirements(check.label_selector),
    )
