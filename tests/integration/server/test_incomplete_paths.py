"""A server that does not know all paths yet asks the client to retry instead of sending a 404."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from integration.server.conftest import Call
from tetrapod.generic.server.server import GenericAPIServer


@pytest.mark.parametrize("path", ["/unknown", "/apis/example.com/v1", "/apis/example.com/v1/things/a"])
async def test_unknown_path_is_503_until_all_paths_are_known(server: GenericAPIServer, call: Call, path: str) -> None:
    known = asyncio.Event()
    server.lifecycle.paths_known.append(known)
    rejection = await call("GET", path)
    assert rejection.status == 503
    assert dict(rejection.headers)[b"retry-after"] == b"5"
    assert orjson.loads(rejection.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the request has been made before all known HTTP paths have been installed, please try again",
        "reason": "ServiceUnavailable",
        "details": {"retryAfterSeconds": 5},
        "code": 503,
    }
    assert (await call("GET", "/version")).status == 200
    known.set()
    response = await call("GET", path)
    assert (response.status, response.body) == (404, b"404 page not found\n")
