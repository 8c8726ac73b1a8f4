"""A connection pool with load balancing: some endpoints are services with several replicas.

A request goes to the next ready replica. It is retried at another one only if the first one cannot have executed it:

- nothing was sent;
- a stopping replica rejected it (`filters/draining.py`);
- or its method may be repeated and no byte of a response had arrived, as in net/http.

Streamed bodies are not buffered, so requests with them are only retried if nothing was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, Unpack

from tetrapod.generic.http.peers import NOT_PROCESSED
from tetrapod.generic.http.request import BodyReader, HeaderList
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.proxy.endpoint import Endpoint, parse_url
from tetrapod.generic.proxy.exchange import BackendError, Exchange
from tetrapod.generic.proxy.pool import REPLAYABLE, BackendPool, ExchangeOptions
from tetrapod.generic.proxy.replicas import Address, Replicas
from tetrapod.generic.proxy.tls import ClientTLS

DIAL_SECONDS: Final = 3.0
"""The maximum seconds to connect to a replica if there are others to try. It is shorter than for other backends,
because the host of the replica may be down.
"""
_PROBE_SECONDS: Final = 3.0
_TRIES: Final = 3
"""The maximum number of tries at a single address, which may have several replicas behind it."""


class BalancedPool(BackendPool):
    """A connection pool that distributes the requests to some endpoints over the replicas of a service."""

    def __init__(self) -> None:
        super().__init__()
        self._services: dict[tuple[str, int], Replicas] = {}
        self._probing: dict[str, ClientTLS | None] = {}

    def balance(self, name: str, urls: Sequence[str], tls: ClientTLS) -> Endpoint:
        """Register `urls` as the replicas of one service, and return the endpoint by which requests address it.

        It is the endpoint of the first URL. If that is registered already, the other arguments are ignored.

        Args:
            name: the name of the service in logs and metrics.
            urls: the URLs of the replicas. A host may have several addresses.
            tls: the TLS configuration of https URLs, also for readiness probes.

        Raises:
            BackendError: a URL is invalid.
        """
        endpoints = [parse_url(url, tls)[0] for url in urls]
        first = endpoints[0]
        hosts = [(endpoint.host, endpoint.port) for endpoint in endpoints]
        if (first.host, first.port) not in self._services:
            self._services[first.host, first.port] = Replicas(name, hosts, self._close_idle)
            self._probing[name] = first.tls
        return first

    def follow(self, lifecycle: Lifecycle) -> None:
        """Start a background task for each service that `balance` has registered. It resolves and probes the replicas.

        Args:
            lifecycle: runs the tasks, and cancels them when the server stops.
        """
        for replicas in self._services.values():
            tls = self._probing[replicas.name]

            async def probe(address: Address, tls: ClientTLS | None = tls) -> bool:
                return await self._is_ready(_endpoint(address, tls))

            lifecycle.background(f"replicas/{replicas.name}", replicas.follow(probe))

    async def exchange(
        self,
        endpoint: Endpoint,
        method: str,
        target: str,
        headers: HeaderList,
        body: BodyReader | bytes = b"",
        **options: Unpack[ExchangeOptions],
    ) -> Exchange:
        replicas = self._services.get((endpoint.host, endpoint.port))
        if replicas is None:
            return await super().exchange(endpoint, method, target, headers, body, **options)
        candidates = await replicas.candidates()
        if not candidates:
            raise BackendError(f"dial tcp: lookup {endpoint.host}: no such host", no_response=True, unsent=True)
        options["host"] = options.get("host") or endpoint.authority
        single = len(candidates) == 1
        attempts = candidates * _TRIES if single else candidates
        repeatable = isinstance(body, bytes)
        for number, address in enumerate(attempts):
            last = number == len(attempts) - 1
            if number and single:
                options["new_connection"] = True
            dial_seconds = endpoint.dial_timeout if last or single else DIAL_SECONDS
            try:
                connection = await super().exchange(
                    _endpoint(address, endpoint.tls, dial_seconds), method, target, headers, body, **options
                )
            except BackendError as error:
                replicas.mark_unavailable(address)
                may_repeat = options.get("replay") or method in REPLAYABLE
                retriable = error.unsent or (error.no_response and repeatable and may_repeat)
                if last or single or not retriable:
                    raise
                continue
            if not _was_not_executed(connection):
                return connection
            replicas.mark_unavailable(address)
            if last or not repeatable:
                return connection
            connection.close()
        raise AssertionError("the last try returns or raises")

    async def _is_ready(self, endpoint: Endpoint) -> bool:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                connection = await super().exchange(endpoint, "GET", "/readyz", [])
                try:
                    await connection.read()
                except BaseException:
                    connection.close()
                    raise
                return connection.status == 200
        except (BackendError, TimeoutError):
            return False

    def _close_idle(self, address: Address) -> None:
        """Close the idle connections to a replica that was removed or is not ready, and drain its HTTP/2 connections.

        Requests in flight, such as watches over a shared HTTP/2 connection, continue. A stopping replica closes idle
        connections soon, and a request that is sent at that moment would be lost.
        """
        self._give_up(lambda endpoint: (endpoint.host, endpoint.port) == (address.host, address.port))


@lru_cache(1024)
def _endpoint(address: Address, tls: ClientTLS | None, dial_timeout: float = DIAL_SECONDS) -> Endpoint:
    if address.host.startswith("/"):  # from a flag, as no lookup returns a path
        return Endpoint(address.host, address.port, None, dial_timeout, is_unix=True)
    return Endpoint(
        address.host, address.port, None if tls is None else replace(tls, server_name=address.name), dial_timeout
    )


def _was_not_executed(connection: Exchange) -> bool:
    """Return whether a stopping replica rejected the request without executing it: a 503 with the header NOT_PROCESSED.

    Remove this header from the response.
    """
    if connection.status != 503:
        return False
    headers = [header for header in connection.headers if header[0] != NOT_PROCESSED]
    not_executed = len(headers) < len(connection.headers)
    connection.headers = headers
    return not_executed
