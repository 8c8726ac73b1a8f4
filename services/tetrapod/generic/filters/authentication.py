"""Finds out who is asking; 401 where a credential was given that nobody accepts (upstream: endpoints/filters/authentication.go).

A request whose user is already known (in-process delegation) is not asked again. `Authorization` and X-Remote-* headers
are dropped once their work is done, so that nothing behind sees them.
"""

from __future__ import annotations

from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.machinery import status


def with_authentication(handler: Handler, authenticator: RequestAuthenticator) -> Handler:
    async def authentication(request: Request) -> Response:
        result = await authenticator.authenticate(request)
        if result is None:
            raise status.unauthorized()
        request.user = result.user
        request.headers = [h for h in request.headers if h[0] != b"authorization" and not h[0].startswith(b"x-remote-")]
        return await handler(request)

    return authentication
