"""Authenticates requests and rejects them with 401 if their credentials are not accepted.

The headers Authorization and X-Remote-* are removed afterwards, so that later handlers do not see them. HTTP/2
connections of clients without credentials are not kept, because they are easily abused (CVE-2023-44487).
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/authentication.go
"""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.filters.auth_metrics import authenticated, not_authenticated
from tetrapod.generic.filters.filter_metrics import FilterLatency
from tetrapod.generic.filters.goaway import CLOSE
from tetrapod.generic.http.known_heads import of_headers
from tetrapod.generic.http.request import Handler, HeaderList, Request, Response
from tetrapod.machinery import status
from tetrapod.machinery.user import ALL_UNAUTHENTICATED, ANONYMOUS

_GATE: Final = "UnauthenticatedHTTP2DOSMitigation"


def with_authentication(handler: Handler, authenticator: RequestAuthenticator, *, shared: bool = False) -> Handler:
    """Return a handler that authenticates a request, sets `request.user`, and calls `handler`.

    If the authenticator returns None, the handler raises a StatusError with 401; errors of the authenticator pass
    through. Audit annotations and warnings about the credential are added to the request. Headers with a credential or
    an identity are removed.

    Args:
        handler: the next handler.
        authenticator: authenticates requests.
        shared: whether connections are those of a front proxy, which the requests of several users share. They are then
            kept in any case.
    """
    latency = FilterLatency("authentication")

    def closes(request: Request) -> bool:
        return request.http_version == "2.0" and not shared and feature_gates.enabled(_GATE)

    async def authentication(request: Request) -> Response:
        started = time.monotonic()
        try:
            result = await authenticator.authenticate(request)
        except status.StatusError as error:
            not_authenticated(time.monotonic() - started, error=True)
            if closes(request):
                error.headers.append(CLOSE)
            raise
        if result is None:
            not_authenticated(time.monotonic() - started, error=False)
            raise _unauthorized(close=closes(request))
        seconds = time.monotonic() - started
        authenticated(result.user.name, seconds)
        latency.observe(seconds)
        user = request.user = result.user
        request.annotations.update(result.annotations)
        request.warnings.extend(result.warnings)
        request.headers = of_headers(request, _without_credentials)
        if (user.name == ANONYMOUS.name or ALL_UNAUTHENTICATED in user.groups) and closes(request):
            return await _answer_and_close(handler, request)
        return await handler(request)

    return authentication


def _without_credentials(headers: HeaderList) -> HeaderList:
    return [header for header in headers if header[0] != b"authorization" and not header[0].startswith(b"x-remote-")]


def _unauthorized(*, close: bool) -> status.StatusError:
    """Return a 401. With `close`, it has the header after which an HTTP/2 connection is closed."""
    error = status.unauthorized()
    if close:
        error.headers.append(CLOSE)
    return error


async def _answer_and_close(handler: Handler, request: Request) -> Response:
    """Return the response of `handler` with the header after which an HTTP/2 connection is closed."""
    try:
        response = await handler(request)
    except status.StatusError as error:
        error.headers.append(CLOSE)
        raise
    response.headers = [*response.headers, CLOSE]
    return response
