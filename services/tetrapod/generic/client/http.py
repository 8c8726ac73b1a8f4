"""A transport over HTTPS, for controllers and delegation where services run apart; pooled connections, our own certificate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from tetrapod.generic.client.rest import RestClient, error_from
from tetrapod.generic.proxy.connection import BackendError
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.generic.storage.backend import Unavailable


class HttpTransport:
    def __init__(self, pool: BackendPool, url: str, tls: ClientTLS | None, timeout: float = 35.0) -> None:
        self._pool = pool
        self._url = url.rstrip("/")
        self._tls = tls
        self._timeout = timeout

    async def send(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            code, _, answer = await self._pool.fetch(method, self._url + target, body, headers, self._timeout, tls=self._tls)
        except (BackendError, TimeoutError, OSError) as error:
            raise Unavailable(f"{self._url}: {error or type(error).__name__}") from error
        return code, answer

    async def stream(self, target: str, headers: dict[str, str]) -> AsyncIterator[bytes]:
        rest, code = b"", 0
        try:
            stream = cast(AsyncGenerator[tuple[int, bytes], None], self._pool.stream("GET", self._url + target, headers, tls=self._tls))
            async with aclosing(stream) as pieces:
                async for code, piece in pieces:
                    rest += piece
                    if code != 200:
                        continue  # a refusal is read to its end
                    *lines, rest = rest.split(b"\n")
                    for line in lines:
                        if line:
                            yield line
        except (BackendError, OSError) as error:
            raise Unavailable(f"{self._url}: {error}") from error
        if code != 200:
            raise error_from(code, rest)


def http_client(pool: BackendPool, url: str, tls: ClientTLS | None, user_agent: str) -> RestClient:
    return RestClient(HttpTransport(pool, url, tls), user_agent)
