"""Authorizes requests; 403 with upstream's text if they are not allowed.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/authorization.go
"""

from __future__ import annotations

import time

from tetrapod.generic.authorization.interface import Attributes, Authorizer, Decision
from tetrapod.generic.authorization.message import forbidden_error
from tetrapod.generic.authorization.selector_attributes import requirements_of
from tetrapod.generic.filters.auth_metrics import authorized
from tetrapod.generic.filters.filter_metrics import FilterLatency
from tetrapod.generic.filters.plain_errors import internal_error
from tetrapod.generic.http.request import Handler, Request, Response


def with_authorization(handler: Handler, authorizer: Authorizer) -> Handler:
    """Return a handler that passes on the requests that the authorizer allows.

    Other requests are rejected with StatusError 403, or with the response 500 if the authorizer also reports an error.
    The decision and its reason are added to the request's audit annotations.
    """
    latency = FilterLatency("authorization")

    async def authorization(request: Request) -> Response:
        attributes = attributes_of(request)
        started = time.monotonic()
        answer = await authorizer.authorize(attributes)
        seconds = time.monotonic() - started
        authorized(answer, seconds)
        if request.audit is not None:
            request.audit.add_latency("authorization", started)
        if answer.decision is not Decision.ALLOW and answer.error:
            request.annotations["authorization.k8s.io/reason"] = "internal error"
            return internal_error(request, answer.error)
        if answer.decision is not Decision.ALLOW:
            request.annotations["authorization.k8s.io/decision"] = "forbid"
            request.annotations["authorization.k8s.io/reason"] = answer.reason
            raise forbidden_error(attributes, answer.reason)
        latency.observe(seconds)
        request.served = not attributes.resource_request  # endpoints of resources set it themselves
        request.annotations["authorization.k8s.io/decision"] = "allow"
        request.annotations["authorization.k8s.io/reason"] = answer.reason
        return await handler(request)

    return authorization


def attributes_of(request: Request) -> Attributes:
    """Return the attributes of the request for the authorizer (upstream: GetAuthorizerAttributes).

    Raises:
        ValueError: the request info is not set.
    """
    info = request.info
    if info is None:
        raise ValueError("authorization needs the request info")
    if not info.is_resource_request:
        return Attributes(request.user, info.verb, path=info.path)
    field_requirements, label_requirements = requirements_of(info)
    return Attributes(
        request.user,
        info.verb,
        namespace=info.namespace,
        group=info.api_group,
        version=info.api_version,
        resource=info.resource,
        subresource=info.subresource,
        name=info.name,
        resource_request=True,
        path=info.path,
        field_requirements=field_requirements,
        label_requirements=label_requirements,
    )
