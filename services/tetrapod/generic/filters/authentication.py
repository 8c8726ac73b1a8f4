"""Authenticates requests and rejects them with 401 if their credentials are not accepted.

The headers Authorization and X-Remote-* are removed afterwards, so that later handlers do not see them.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/authentication.go
"""

from __future__ import annotations

import time

from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.filters.auth_metrics import authenticated, not_authenticated
from tetrapod.generic.filters.filter_metrics import FilterLatency
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery import status


def with_authentication(handler: Handler, authenticator: RequestAuthenticator) -> Handler:
    """Return a handler that authenticates a request, sets `request.user`, and calls `handler`.

    If the authenticator returns None, the handler raises a StatusError with 401; errors of the authenticator pass
    through. Audit annotations and warnings about the credential are added to the request. Headers with a credential or
    an identity are removed.
    """
    latency = FilterLatency("authentication")

    async def authentication(request: Request) -> Response:
        started = time.monotonic()
        try:
            result = await authenticator.authenticate(request)
        except status.StatusError:
            not_authenticated(time.monotonic() - started, error=True)
            raise
        if result is None:
            not_authenticated(time.monotonic() - started, error=False)
            raise status.unauthorized()
        seconds = time.monotonic() - started
        authenticated(result.user.name, seconds)
        latency.observe(seconds)
        request.user = result.user
        request.annotations.update(result.annotations)
        request.warnings.extend(result.warnings)
        request.headers = [h for h in request.headers if h[0] != b"authorization" and not h[0].startswith(b"x-remote-")]
        return await handler(request)

    return authentication
