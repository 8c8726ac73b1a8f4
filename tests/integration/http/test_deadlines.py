"""Requests end at their deadline, wherever they hang; a cancellation for another reason is not reported as a
timeout.
"""

from __future__ import annotations

import asyncio
import time
import uuid

import pytest

from tetrapod.generic.filters.audit_id import new_audit_id
from tetrapod.generic.filters.deadline import with_request_deadline
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery.requestinfo import parse


def _request(query: str = "") -> Request:
    request = Request("GET", "/api/v1/pods", query_string=query)
    request.info = parse("GET", "/api/v1/pods", query)
    return request


async def _hang(_: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def _answer(_: Request) -> Response:
    await asyncio.sleep(0)
    return Response(200, [])


@pytest.mark.parametrize("query", ["", "timeout=200ms"])
async def test_a_request_that_hangs_is_answered_504_and_its_task_lives_on(query: str) -> None:
    handler = with_request_deadline(_hang, 0.2 if not query else 60)
    begun = time.monotonic()
    late = await handler(_request(query))
    assert (late.status, late.headers) == (504, [(b"content-type", b"text/plain; charset=utf-8")])
    assert late.body == (
        b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
        b'"reason":"Timeout","details":{},"code":504}\n'
    )
    assert 0.15 < time.monotonic() - begun < 5
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert (await with_request_deadline(_answer, 0.2)(_request())).status == 200


async def test_each_request_has_its_own_deadline() -> None:
    handler = with_request_deadline(_hang, 0.4)

    async def late(after: float) -> float:
        await asyncio.sleep(after)
        begun = time.monotonic()
        assert (await handler(_request())).status == 504
        return time.monotonic() - begun

    assert all(took >= 0.4 for took in await asyncio.gather(late(0), late(0.2), late(0.3)))


async def test_a_cancelled_request_is_cancelled_and_not_late() -> None:
    handler: Handler = with_request_deadline(_hang, 60)

    async def run() -> Response:
        return await handler(_request())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_audit_ids_are_random_uuids() -> None:
    made = [uuid.UUID(new_audit_id()) for _ in range(1000)]
    assert {one.version for one in made} == {4}
    assert len(set(made)) == 1000
