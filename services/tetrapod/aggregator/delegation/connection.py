"""`PeerConnection`: GET requests of the aggregator itself to a peer service (core, extensions or auth)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS
from tetrapod.generic.proxy.endpoint import parse_url
from tetrapod.generic.proxy.exchange import Exchange
from tetrapod.generic.proxy.headers import identity_headers
from tetrapod.machinery.user import LOOPBACK

_TIMEOUT: Final = 5.0
_CHUNK_TIMEOUT: Final = 30.0
"""Seconds for the next chunk of a response that the service computes while it sends."""
_MAX_BYTES: Final = 256 << 20


class PeerConnection:
    """A client of one peer service, which sends the aggregator's own requests, such as those for discovery documents.

    It authenticates as the front proxy, and the requests have the aggregator's own user in identity headers.

    Attributes:
        name: the name of the service: "core", "extensions" or "auth".
        pool: the pool of connections.
        endpoint: the endpoint of the service.

    Args:
        url: the base URL of the service.
        tls: the TLS configuration, with the aggregator's front-proxy certificate.
    """

    def __init__(self, name: str, pool: BackendPool, url: str, tls: ClientTLS) -> None:
        self.name = name
        self.pool = pool
        self.endpoint, _, _ = parse_url(url, tls)

    async def get(self, target: str, accept: str = "application/json", etag: str = "") -> tuple[int, HeaderList, bytes]:
        """Send a GET request and return status, headers and body of the response. It times out after 5 seconds.

        Args:
            target: path and query.
            accept: the header Accept.
            etag: the header If-None-Match; "" for none.

        Raises:
            BackendError, TimeoutError: the service cannot be reached.
        """
        async with asyncio.timeout(_TIMEOUT):
            connection = await self._request(target, accept, etag)
            try:
                return connection.status, connection.headers, await connection.read(_MAX_BYTES)
            except BaseException:
                connection.close()
                raise

    async def stream(self, target: str, accept: str) -> AsyncIterator[bytes]:
        """Yield the chunks of the body of a GET request, for responses that take long. A 404 yields nothing.

        The response must begin within 5 seconds, and each chunk must follow within 30 seconds.

        Raises:
            BackendError, TimeoutError: the service cannot be reached, or responds with another status.
        """
        async with asyncio.timeout(_TIMEOUT):
            connection = await self._request(target, accept)
        try:
            if connection.status not in (200, 404):
                raise BackendError(f"status {connection.status} of {target}")
            while True:
                async with asyncio.timeout(_CHUNK_TIMEOUT):
                    chunk = await connection.chunk()
                if not chunk:
                    return
                if connection.status == 200:
                    yield chunk
        finally:
            if not connection.complete:
                connection.close()

    async def _request(self, target: str, accept: str, etag: str = "") -> Exchange:
        headers: HeaderList = [(b"accept", accept.encode()), *identity_headers(LOOPBACK)]
        if etag:
            headers.append((b"if-none-match", etag.encode()))
        return await self.pool.exchange(self.endpoint, "GET", target, headers)
