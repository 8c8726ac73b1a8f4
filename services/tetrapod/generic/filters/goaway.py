"""Asks some HTTP/2 clients to open another connection.

`--goaway-chance` sets the fraction of requests, so that a load balancer may give clients to another replica. Other
filters ask for it by the key `CLOSES` in the state of a request. The HTTP server sends GOAWAY for the header
`Connection: close`. Requests in flight are not affected.

Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/goaway.go
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tetrapod.generic.http.request import Handler, Request, Response

CLOSES: Final = "closes connection"
"""The key in the state of a request whose connection is to be closed after it."""


def with_goaway(handler: Handler, chance: float, number: Callable[[], float] = random.random) -> Handler:
    """Return a handler that adds `Connection: close` to some responses to HTTP/2 requests.

    They are a fraction of all, and those to requests with the key `CLOSES` in their state.

    Args:
        handler: the next handler.
        chance: the fraction; 0 marks none.
        number: returns a random number from 0 to 1.
    """

    async def goaway(request: Request) -> Response:
        response = await handler(request)
        if request.http_version == "2.0" and (CLOSES in request.state or number() < chance):
            response.headers.append((b"connection", b"close"))
        return response

    return goaway
