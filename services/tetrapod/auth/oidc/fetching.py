"""`Fetcher`: GET requests to an identity provider.

Like those of Go's http.Client, they use TLS with the issuer's CAs, follow redirects and end within 30 seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.machinery.golang.quoting import go_quote

TIMEOUT: Final = 30.0
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_MAX_REDIRECTS: Final = 10
_BODY_LIMIT: Final = 4 << 20


class FetchError(Exception):
    """The error of a failed request; the text is Go's: `Get "https://…": …`."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The response to a request of `Fetcher`. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Fetcher:
    """A client for the URLs of one issuer.

    Args:
        pool: sends the requests.
        authorities: a PEM bundle of CAs; "" for those of the system.
        rewrites: the URLs to fetch in place of others (discoveryURL). Errors name the original URL.
    """

    def __init__(self, pool: BackendPool, authorities: str = "", rewrites: Mapping[str, str] | None = None) -> None:
        self._pool, self._tls, self._rewrites = pool, ClientTLS(ca_data=authorities), dict(rewrites or {})

    async def get(self, url: str, bearer: str = "") -> Fetched:
        """Fetch a URL, following redirects, and return the final response, which may have any status.

        Args:
            url: the URL.
            bearer: a bearer token; "" for none. It is not sent to targets of redirects.

        Raises:
            FetchError: the request failed, the response was not complete within 30 seconds or is larger than 4 MiB, or
                it is the tenth redirect.
        """
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._follow(url, bearer)
        except TimeoutError:
            text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise FetchError(f"Get {go_quote(url)}: {text}") from None

    async def _follow(self, url: str, bearer: str) -> Fetched:
        first = url
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        for _ in range(_MAX_REDIRECTS):
            target = self._rewrites.get(url, url)
            try:
                status, response_headers, body = await self._pool.fetch(
                    "GET", target, b"", headers, TIMEOUT, tls=self._tls, limit=_BODY_LIMIT
                )
            except (BackendError, OSError, ValueError) as error:
                raise FetchError(f"Get {go_quote(first)}: {error}") from None
            decoded_headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in response_headers}
            location = decoded_headers.get("location")
            if status not in _REDIRECTS or not location:
                return Fetched(status, decoded_headers, body)
            try:
                url = urljoin(target, location)
            except ValueError as error:
                raise FetchError(
                    f"Get {go_quote(first)}: failed to parse Location header {go_quote(location)}: {error}"
                ) from None
            headers = {}
        raise FetchError(f"Get {go_quote(url)}: stopped after {_MAX_REDIRECTS} redirects")
