"""URLs of backends: a malformed one is a `BackendError`, as is any other failed request."""

from __future__ import annotations

import pytest

from tetrapod.generic.proxy import BackendError
from tetrapod.generic.proxy.pool import BackendPool


@pytest.mark.parametrize(
    "url", ["http://host:99999/", "https://host:port/", "http://[::1/", "ftp://host/", "http:///a"]
)
async def test_a_request_to_a_malformed_url_fails(url: str) -> None:
    pool = BackendPool()
    with pytest.raises(BackendError, match="unsupported URL"):
        await pool.fetch("GET", url)
    await pool.close()
