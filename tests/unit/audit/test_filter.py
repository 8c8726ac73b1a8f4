"""Tests of how requests can end, and of what the last audit event records about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tetrapod.generic.audit.context import Audit
from tetrapod.generic.audit.event import Event
from tetrapod.generic.audit.policy_file import policy_of
from tetrapod.generic.filters.audit import with_audit, with_rejection_audit
from tetrapod.generic.http.request import (
    ClientGone,
    Handler,
    Request,
    Response,
    StreamResponse,
    StreamWriter,
    UpgradeResponse,
)
from tetrapod.machinery import requestinfo
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.status import StatusError, forbidden


class Kept:
    """A backend that stores events, or fails if `fails` is set."""

    def __init__(self, *, fails: bool = False) -> None:
        self.documents: list[Any] = []
        self.fails = fails

    async def process(self, events: Sequence[Event]) -> bool:
        self.documents += [event.document for event in events]
        return not self.fails

    async def close(self) -> None:
        """A handler's writer that never blocks."""


def request(path: str = "/api/v1/namespaces/a/pods/b", query: str = "") -> Request:
    made = Request("GET", path, query_string=query)
    made.info = requestinfo.parse("GET", path, query)
    return made


def audited(handler: Handler, kept: Kept) -> Handler:
    audit = Audit(policy_of({"rules": [{"level": "RequestResponse"}]}), kept)
    return with_rejection_audit(with_audit(handler, audit), audit)


def raising(error: BaseException) -> Handler:
    async def handler(request: Request) -> Response:
        raise error

    return handler


async def ends(error: BaseException, asked: Request | None = None) -> list[Any]:
    kept = Kept()
    with pytest.raises(type(error)):
        await audited(raising(error), kept)(asked or request())
    assert kept.documents[0]["stage"] == "RequestReceived"
    return kept.documents[1:]


async def test_an_unexpected_exception_is_logged_in_the_stage_panic() -> None:
    (event,) = await ends(RuntimeError("oops"))
    assert event["stage"] == "Panic"
    assert event["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": "APIServer panic'd: oops",
        "reason": "InternalError",
        "code": 500,
    }


async def test_a_rejection_is_reported_whole() -> None:
    rejected = forbidden(GroupResource("", "pods"), "b", "no")
    (event,) = await ends(rejected)
    assert event["stage"] == "ResponseComplete" and event["responseStatus"]["message"] == rejected.message


async def test_a_client_that_disconnects_is_recorded() -> None:
    for error in (ClientGone(), asyncio.CancelledError()):
        (event,) = await ends(error)
        assert (event["responseStatus"]["message"], event["responseStatus"]["code"]) == ("Connection closed early", 200)


async def test_a_timed_out_request_is_recorded() -> None:
    asked = request()
    asked.deadline = time.monotonic()
    (event,) = await ends(asyncio.CancelledError(), asked)
    expected = "Timeout: request did not complete within requested timeout - context deadline exceeded"
    assert (event["responseStatus"]["message"], event["responseStatus"]["code"]) == (expected, 504)


async def test_long_requests_start_even_where_they_are_rejected() -> None:
    events = await ends(StatusError(403, "Forbidden", "no"), request("/api/v1/namespaces/a/pods/b/log"))
    assert [event["stage"] for event in events] == ["ResponseStarted", "ResponseComplete"]


@pytest.mark.parametrize("upgraded", [False, True])
async def test_streams_are_complete_when_they_have_ended(upgraded: bool) -> None:
    kept = Kept()
    stages_while_running: list[str] = []

    async def run(_: Any) -> None:
        stages_while_running.extend(document["stage"] for document in kept.documents)
        raise ConnectionAbortedError

    async def handler(_: Request) -> Response:
        return UpgradeResponse(run) if upgraded else StreamResponse(200, [], run, endless=True)

    response = await audited(handler, kept)(request("/api/v1/namespaces/a/pods/b/attach"))
    assert isinstance(response, UpgradeResponse | StreamResponse)
    with pytest.raises(ConnectionAbortedError):
        await response.run(None)  # type: ignore[arg-type]
    assert stages_while_running == ["RequestReceived", "ResponseStarted"]
    last = kept.documents[-1]
    assert (last["stage"], last["responseStatus"]["code"]) == ("ResponseComplete", 101 if upgraded else 200)


async def test_a_slow_request_has_latency_annotations() -> None:
    kept = Kept()

    async def handler(asked: Request) -> Response:
        assert asked.audit is not None
        asked.audit.add_latency("mutating-webhook", time.monotonic() - 0.25)
        asked.audit.add_latency("mutating-webhook", time.monotonic() - 0.25)
        asked.audit.add_latency("validating-webhook", time.monotonic() - 0.2, at_once=True)
        asked.audit.add_latency("validating-webhook", time.monotonic() - 0.1, at_once=True)
        return Response(200, [])

    for late in (0.4, 2.0):
        asked = request()
        asked.received -= late
        await audited(handler, kept)(asked)
    quick, slow = (kept.documents[i].get("annotations", {}) for i in (1, 3))
    assert not quick
    latencies = {key.removeprefix("apiserver.latency.k8s.io/"): value for key, value in slow.items()}
    assert set(latencies) == {"authentication", "mutating-webhook", "validating-webhook", "total"}
    assert (
        latencies["mutating-webhook"].startswith("50")
        and latencies["validating-webhook"].startswith("20")
        and latencies["total"].startswith("2")
    )


async def test_a_watch_is_not_slow() -> None:
    async def handler(asked: Request) -> Response:
        asked.received -= 2.0
        return Response(200, [])

    asked = request()
    asked.info = requestinfo.parse("GET", "/api/v1/pods", "watch=1")
    await audited(handler, kept := Kept())(asked)
    assert not [key for event in kept.documents for key in event.get("annotations", {}) if "latency" in key]


async def test_an_unauthenticated_request_has_one_event_if_the_policy_wants_it() -> None:
    audit = Audit(
        policy_of({"rules": [{"level": "None", "nonResourceURLs": ["/quiet"]}, {"level": "Metadata"}]}), kept := Kept()
    )
    handler = with_rejection_audit(raising(StatusError(401, "Unauthorized", "Unauthorized")), audit)
    for path in ("/quiet", "/loud"):
        with pytest.raises(StatusError):
            await handler(request(path))
    (event,) = kept.documents
    assert (event["stage"], event["requestURI"], event["user"]) == ("ResponseStarted", "/loud", {})


async def test_a_request_fails_if_its_first_event_cannot_be_stored() -> None:
    kept = Kept(fails=True)
    response = await audited(raising(AssertionError("never asked")), kept)(request(query="x=<"))
    text = b'Internal Server Error: "/api/v1/namespaces/a/pods/b?x=&lt;": failed to store audit event\n'
    assert (response.status, response.body) == (500, text)


async def test_a_client_that_leaves_after_a_large_response_leaves_its_event_whole() -> None:
    class Leaving:
        """A client that disconnects when it has received everything, which cancels the exchange."""

        def write(self, data: bytes) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

    async def run(writer: Any) -> None:
        writer.write(b'{"kind":"List","apiVersion":"v1","items":["%b"]}' % (b"x" * 100_000))

    async def handler(asked: Request) -> Response:
        response = StreamResponse(200, [(b"content-type", b"application/json")], run)
        assert asked.audit is not None
        await asked.audit.record_response(response)
        return response

    kept = Kept()
    response = await audited(handler, kept)(request())
    assert isinstance(response, StreamResponse)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(response.run(cast(StreamWriter, Leaving())))
    assert kept.documents[-1]["stage"] == "ResponseComplete"
    assert "responseObject" in kept.documents[-1]
