"""Finds out who is asking; 401 where a credential was given that nobody accepts (upstream: endpoints/filters/authentication.go).

A request whose user is already known (in-process delegation) is not asked again. `Authorization` and X-Remote-* headers
are dropped once their work is done, so that nothing behind sees them.
"""

from __future__ import annotations

import time

from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.filters.auth_metrics import authenticated, not_authenticated
from tetrapod.generic.filters.filter_metrics import FilterLatency
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.machinery import status


def with_authentication(handler: Handler, authenticator: RequestAuthenticator) -> Handler:
    latency = FilterLatency("authentication")

    async def authentication(request: Request) -> Response:
        began = time.monotonic()
        try:
            result = await authenticator.authenticate(request)
        except status.StatusError:
            not_authenticated(time.monotonic() - began, error=True)
            raise
        if result is None:
            not_authenticated(time.monotonic() - began, error=False)
            raise status.unauthorized()
        seconds = time.monotonic() - began
        authenticated(result.user.name, seconds)
        latency.took(seconds)
        request.user = result.user
        request.annotations.update(result.annotations)
        request.warnings.extend(result.warnings)
        request.headers = [h for h in request.headers if h[0] != b"authorization" and not h[0].startswith(b"x-remote-")]
        return await handler(request)

    return authentication
