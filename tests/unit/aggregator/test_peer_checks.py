"""The health checks of another service, for responses that no service sends in the tests of four services."""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

import pytest

from tetrapod.aggregator.delegation.connection import PeerConnection
from tetrapod.aggregator.delegation.peer_checks import PeerChecks

PATHS: Final = b'{"paths": ["/livez/ping", "/readyz/ping"]}'


class Connection:
    """A connection to a service that answers each path with a status and a body."""

    name = "core"

    def __init__(self, **replies: tuple[int, bytes]) -> None:
        self._replies = replies

    async def get(self, target: str, accept: str = "", etag: str = "") -> tuple[int, Any, bytes]:
        status, body = self._replies.get(target.strip("/").partition("?")[0], (200, PATHS))
        return status, [], body


def results(endpoint: str, status: int, body: bytes) -> dict[str, str | None]:
    async def read() -> dict[str, str | None]:
        checks = PeerChecks(cast(PeerConnection, Connection(**{endpoint: (status, body)})))
        await checks.refresh()
        return dict(await checks.results(endpoint))

    return asyncio.run(read())


def test_checks_of_a_service_have_their_results() -> None:
    body = b"[+]ping ok\n[-]etcd failed: reason withheld\nlivez check failed\n"
    assert results("livez", 500, body) == {"ping": None, "etcd": "reason withheld", "service/core": None}


@pytest.mark.parametrize("status", [401, 403, 429, 503])
@pytest.mark.parametrize("endpoint", ["livez", "readyz"])
def test_checks_of_a_service_that_rejects_the_request_fail(endpoint: str, status: int) -> None:
    failed = results(endpoint, status, b'{"kind": "Status"}')
    assert failed.keys() == {"ping", "service/core"}
    assert None not in failed.values()
