"""Asks some HTTP/2 clients to open another connection, which a load balancer may give to another replica.

`--goaway-chance` sets the fraction of requests. The HTTP server sends GOAWAY for the header `Connection: close`.
Requests in flight are not affected.

Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/goaway.go
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tetrapod.generic.http.request import Handler, Request, Response

CLOSE: Final = (b"connection", b"close")
"""The response header after which an HTTP/2 connection is closed."""


def with_probabilistic_goaway(handler: Handler, chance: float, number: Callable[[], float] = random.random) -> Handler:
    """Return a handler that adds `Connection: close` to a fraction of the responses to HTTP/2 requests.

    Args:
        handler: the next handler.
        chance: the fraction; 0 marks none.
        number: returns a random number from 0 to 1.
    """
    if not chance:
        return handler

    async def goaway(request: Request) -> Response:
        response = await handler(request)
        if request.http_version == "2.0" and number() < chance:
            response.headers.append(CLOSE)
        return response

    return goaway
