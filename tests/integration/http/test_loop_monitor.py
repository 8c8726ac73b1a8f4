"""Steps of the event loop are measured by request, and long ones are logged."""

from __future__ import annotations

import logging
import time

import pytest

from integration.http.conftest import Client, Serve
from tetrapod.generic.http import receiving
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.metrics.registry import every, reset
from tetrapod.generic.observability.exposition.text import render
from tetrapod.machinery.user import UserInfo

_WARNING = 0.05


def burn(seconds: float) -> None:
    """Use CPU time, which does not depend on the load of the host."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def handler(request: Request) -> Response:
    request.user = UserInfo("mallory")
    if request.path == "/burn":
        burn(2 * _WARNING)
    elif request.path == "/block":
        time.sleep(2 * _WARNING)  # noqa: ASYNC251 - the loop is to be blocked
    return Response(200, [], b"done")


def warnings_of(caplog: pytest.LogCaptureFixture, message: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.getMessage() == message]


def value(name: str) -> float:
    line = next(line for line in render(every()).decode().splitlines() if line.startswith(name))
    return float(line.rpartition(" ")[2])


async def test_a_long_step_is_logged_with_its_request(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    client = await Client.connect(await serve(handler, step_warning=_WARNING))
    client.get("/burn?" + "x" * 1000, "User-Agent: curl/8\r\n")
    await client.answer()
    (record,) = warnings_of(caplog, "Event loop blocked by a request")
    fields = vars(record)
    assert (fields["method"], fields["user"], fields["userAgent"], fields["srcIP"]) == (
        "GET",
        "mallory",
        "curl/8",
        "127.0.0.1",
    )
    assert fields["seconds"] >= 2 * _WARNING
    assert fields["path"] == "/burn"
    await client.close()


async def test_warnings_about_steps_are_limited_in_rate(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    client = await Client.connect(await serve(handler, step_warning=_WARNING))
    began = time.monotonic()
    for _ in range(5):
        client.get("/burn")
        await client.answer()
    assert len(warnings_of(caplog, "Event loop blocked by a request")) <= 1 + (time.monotonic() - began)
    await client.close()


async def test_a_step_that_uses_little_cpu_is_not_logged_however_long_it_lasts(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    client = await Client.connect(await serve(handler, step_warning=_WARNING))
    client.get("/block")
    await client.answer()
    assert not warnings_of(caplog, "Event loop blocked by a request")
    assert not warnings_of(caplog, "Event loop delayed")
    await client.close()


async def test_no_step_is_logged_without_a_threshold(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    client = await Client.connect(await serve(handler))
    client.get("/burn")
    await client.answer()
    assert not warnings_of(caplog, "Event loop blocked by a request")
    await client.close()


async def test_metrics_show_the_longest_step_until_they_are_reset(serve: Serve) -> None:
    reset()
    client = await Client.connect(await serve(handler))
    client.get("/burn")
    await client.answer()
    assert value("apiserver_event_loop_longest_step_seconds") >= 2 * _WARNING
    assert value('apiserver_event_loop_step_seconds_bucket{le="0.05"}') == 0
    assert value("apiserver_event_loop_step_seconds_count") == 1
    reset()
    assert value("apiserver_event_loop_longest_step_seconds") == 0
    await client.close()


async def test_parsing_that_takes_long_is_a_step_too(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "NOTICED", 0.0)  # bodies are decoded in parts that take less than the usual time
    reset()
    client = await Client.connect(await serve(handler))
    client.send(
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 100_000 + b"0\r\n\r\n"
    )
    await client.answer()
    assert value("apiserver_event_loop_longest_step_seconds") > 0
    await client.close()
