"""A transport over HTTPS with pooled connections, for controllers and delegation between separate processes.

It authenticates with a client certificate. External API servers use the token of a service account instead, from a file
that is renewed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

from tetrapod.generic.client.metrics import count_request
from tetrapod.generic.client.rest import RestClient, error_from
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.headers import identity_headers
from tetrapod.generic.proxy.pool import BackendPool, header_list
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.machinery.user import UserInfo

_TOKEN_SECONDS: Final = 60.0
"""Seconds for which a token is used before its file is read again (upstream: client-go's cachingTokenSource)."""


class HttpTransport:
    """A `Transport` over HTTPS.

    Args:
        pool: the connections.
        url: the base URL of the server.
        tls: the TLS configuration; None means plain HTTP.
        timeout: the limit of requests other than watches, in seconds.
        token_file: a file with the bearer token, which is read again every minute; "" for none.
        token: the bearer token if `token_file` is empty; "" for none.
        user: the user for the identity headers, for a server that trusts this process as a front proxy; None for no
            such headers.
    """

    def __init__(
        self,
        pool: BackendPool,
        url: str,
        tls: ClientTLS | None,
        timeout: float = 35.0,
        token_file: str = "",
        token: str = "",
        user: UserInfo | None = None,
    ) -> None:
        self._pool = pool
        self._url = url.rstrip("/")
        self._host = urlsplit(self._url).netloc
        self._tls = tls
        self._timeout = timeout
        self._token_file = token_file
        self._token, self._token_read = token, float("-inf")
        self._identity = identity_headers(user) if user is not None else []

    def _with_credentials(self, headers: dict[str, str]) -> dict[str, str] | HeaderList:
        if self._identity:
            return header_list(headers) + self._identity
        if self._token_file and time.monotonic() - self._token_read > _TOKEN_SECONDS:
            self._token, self._token_read = Path(self._token_file).read_text("utf-8").strip(), time.monotonic()
        return {**headers, "authorization": f"Bearer {self._token}"} if self._token else headers

    async def send(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Send a request and return the status code and the body.

        `target` is the path with the query.

        Raises:
            Unavailable: the server cannot be reached, the connection broke, or the response did not arrive within the
                timeout.
        """
        began, code, response = time.monotonic(), 0, b""
        try:
            code, _, response = await self._pool.fetch(
                method, self._url + target, body, self._with_credentials(headers), self._timeout, tls=self._tls
            )
        except (BackendError, TimeoutError, OSError) as error:
            raise Unavailable(f"{self._url}: {error or type(error).__name__}") from error
        finally:
            count_request(self._host, method, str(code) if code else "<error>", began, len(body), len(response))
        return code, response

    async def stream(self, target: str, headers: dict[str, str]) -> AsyncIterator[bytes]:
        """Send a GET without a timeout, and yield the nonempty lines of the response as they arrive.

        Raises:
            StatusError: the status is not 200.
            Unavailable: the server cannot be reached, or the connection broke.
        """
        incomplete_line, code = b"", 0
        try:
            stream = cast(
                AsyncGenerator[tuple[int, bytes], None],
                self._pool.stream("GET", self._url + target, self._with_credentials(headers), tls=self._tls),
            )
            async with aclosing(stream) as pieces:
                async for code, piece in pieces:
                    incomplete_line += piece
                    if code != 200:
                        continue  # the body of an error is read to its end
                    *lines, incomplete_line = incomplete_line.split(b"\n")
                    for line in lines:
                        if line:
                            yield line
        except (BackendError, OSError) as error:
            raise Unavailable(f"{self._url}: {error}") from error
        if code != 200:
            raise error_from(code, incomplete_line)


def http_client(
    pool: BackendPool,
    url: str,
    tls: ClientTLS | None,
    user_agent: str,
    *,
    token_file: str = "",
    token: str = "",
    user: UserInfo | None = None,
) -> RestClient:
    """Return a client over HTTPS. It does not connect yet.

    Args:
        pool: the connections.
        url: the base URL of the server.
        tls: the TLS configuration; None means plain HTTP.
        user_agent: the User-Agent header of all requests.
        token_file: a file with the bearer token, which is read again every minute; "" for none.
        token: the bearer token if `token_file` is empty; "" for none.
        user: the user for the identity headers, for a server that trusts this process as a front proxy; None for no
            such headers.
    """
    return RestClient(HttpTransport(pool, url, tls, token_file=token_file, token=token, user=user), user_agent)
