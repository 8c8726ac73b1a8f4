"""Requests and responses over HTTP/2: bodies, streams, trailers, flow control, cancellation and shutdown."""

from __future__ import annotations

import asyncio
import gc

import pytest

from integration.http.h2.conftest import Connect, Serve2, settled
from support.waiting import eventually
from tetrapod.generic.http.h2.protocol import Http2Protocol
from tetrapod.generic.http.h2.stream import STREAM_WINDOW, Stream
from tetrapod.generic.http.request import ClientGone, Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http2 import frames

TEXT = [(b"content-type", b"text/plain")]


async def echo(request: Request) -> Response:
    """Answer with the request as the handler sees it."""
    body = await request.body.read(50 << 20)
    lines = [request.method, request.raw_path, request.query_string, request.http_version, str(len(body))]
    lines += [f"{name.decode()}={value.decode('latin-1')}" for name, value in request.headers]
    return Response(200, list(TEXT), "\n".join(lines).encode())


async def test_a_request_has_the_form_that_it_has_in_http_1(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(echo))
    answer = await client.get("/a%20b?x=y", ("user-agent", "test"), ("cookie", "a=1"), ("cookie", "b=2"))
    assert answer.status == 200
    assert answer.headers["content-length"] == str(len(answer.body))
    assert "date" in answer.headers
    assert answer.body.decode().split("\n") == [
        "GET",
        "/a%20b",
        "x=y",
        "2.0",
        "0",
        "host=localhost",
        "user-agent=test",
        "cookie=a=1; b=2",
    ]


async def test_a_body_of_unknown_length_is_marked_as_in_http_1(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(echo))
    unknown = await client.answer(client.request(method="POST", body=b"abc"))
    assert unknown.body.decode().split("\n")[4:] == ["3", "host=localhost", "transfer-encoding=chunked"]
    known = await client.answer(client.request("/", ("content-length", "3"), method="POST", body=b"abc"))
    assert known.body.decode().split("\n")[4:] == ["3", "host=localhost", "content-length=3"]


@pytest.mark.parametrize("size", [0, 1, 16_384, 16_385, 300_000, 9_000_000])
async def test_bodies_of_every_size_arrive(serve2: Serve2, connect: Connect, size: int) -> None:
    client = await connect(await serve2(echo))
    await client.until(lambda: client.settings)
    stream = client.request(method="POST", end=False)
    sent, window = 0, client.settings[frames.INITIAL_WINDOW_SIZE]
    while sent < size:
        while (room := window + client.windows.get(stream, 0) - sent) <= 0:
            assert await client.next_frame() is not None
        piece = min(room, size - sent)
        client.data(stream, b"x" * piece)
        sent += piece
    client.data(stream, b"", end=True)
    assert (await client.answer(stream)).body.decode().split("\n")[4] == str(size)


async def test_a_client_that_expects_it_is_asked_to_continue(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(echo))
    stream = client.request("/", ("expect", "100-continue"), method="POST", end=False)
    assert (await client.until_received(stream)).informational == ["100"]
    client.data(stream, b"body", end=True)
    assert (await client.answer(stream)).status == 200


async def test_an_expected_100_continue_is_sent_even_if_the_body_has_arrived(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(echo))
    stream = client.request("/", ("expect", "100-continue"), method="POST", end=True)
    response = await client.answer(stream)
    assert (response.informational, response.status) == (["100"], 200)


async def test_head_and_empty_responses_have_no_data(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        return Response(204 if request.path == "/204" else 200, [], b"" if request.path == "/204" else b"body")

    client = await connect(await serve2(handler))
    head = await client.answer(client.request(method="HEAD"))
    assert (head.status, head.headers["content-length"], head.body) == (200, "4", b"")
    empty = await client.get("/204")
    assert (empty.status, "content-length" in empty.headers, empty.body) == (204, False, b"")


async def test_connection_specific_headers_of_a_handler_are_not_sent(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [(b"transfer-encoding", b"chunked"), (b"keep-alive", b"1"), (b"x-a", b"b")], b"")

    answer = await (await connect(await serve2(handler))).get()
    assert answer.headers["x-a"] == "b"
    assert not answer.headers.keys() & {"transfer-encoding", "keep-alive"}


async def test_a_stream_is_sent_as_it_is_written_and_ends_with_its_trailers(serve2: Serve2, connect: Connect) -> None:
    go_on = asyncio.Event()

    async def handler(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            writer.write(b"one")
            await go_on.wait()
            writer.write(b"two")
            response.trailers.append((b"x-sum", b"6"))

        response = StreamResponse(200, list(TEXT), run)
        return response

    client = await connect(await serve2(handler))
    stream = client.request()
    assert (await client.until_received(stream, 1)).body == b"one"
    go_on.set()
    answer = await client.answer(stream)
    assert (answer.body, answer.trailers) == (b"onetwo", {"x-sum": "6"})
    assert "content-length" not in answer.headers


async def test_the_head_of_a_stream_is_sent_before_its_first_event(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            await writer.wait_closed()

        return StreamResponse(200, list(TEXT), run, endless=True)

    client = await connect(await serve2(handler))
    stream = client.request()
    assert (await client.until_received(stream)).status == 200


async def test_small_responses_pass_a_large_one(serve2: Serve2, connect: Connect) -> None:
    large = b"x" * (8 << 20)

    async def handler(request: Request) -> Response:
        return Response(200, [], large if request.path == "/large" else b"small")

    client = await connect(await serve2(handler))
    slow = client.request("/large")
    await client.until_received(slow)
    assert (await client.get("/small")).body == b"small"
    assert not client.answers[slow].ended
    assert (await client.answer(slow)).body == large


async def test_a_response_waits_for_the_window_of_its_stream(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"x" * 100)

    client = await connect(await serve2(handler), 10)
    stream = client.request()
    await client.until_received(stream, 10)
    await client.ping()
    assert client.answers[stream].body == b"x" * 10
    client.send(frames.window_update(stream, 90))
    assert (await client.answer(stream)).body == b"x" * 100


async def test_a_larger_initial_window_releases_waiting_responses(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"x" * 100)

    client = await connect(await serve2(handler), 0)
    stream = client.request()
    await client.until_received(stream)
    client.send(frames.settings({frames.INITIAL_WINDOW_SIZE: 100}))
    assert (await client.answer(stream)).body == b"x" * 100


async def test_a_reset_cancels_a_stream_and_leaves_the_others(serve2: Serve2, connect: Connect) -> None:
    cancelled = asyncio.Event()

    async def handler(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        return StreamResponse(200, [], run, endless=True) if request.path == "/watch" else Response(200, [], b"ok")

    server = await serve2(handler)
    client = await connect(server)
    watch = client.request("/watch")
    await client.until_received(watch)
    client.send(frames.reset(watch, frames.CANCEL))
    await asyncio.wait_for(cancelled.wait(), 5)
    assert (await client.get()).body == b"ok"
    await eventually(settled(server))


async def test_a_reset_request_body_ends_the_read_with_client_gone(serve2: Serve2, connect: Connect) -> None:
    gone: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def handler(request: Request) -> Response:
        try:
            await request.body.read(1000)
        except ClientGone:
            gone.set_result(True)
            raise
        return Response(200, [])

    client = await connect(await serve2(handler))
    stream = client.request(method="POST", end=False)
    client.data(stream, b"part")
    client.send(frames.reset(stream, frames.CANCEL))
    assert await asyncio.wait_for(gone, 5)


async def test_a_write_goes_on_when_its_client_resets_the_stream(serve2: Serve2, connect: Connect) -> None:
    began, finished = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        await request.body.read(1000)
        began.set()
        await asyncio.sleep(0.05)
        finished.set()
        return Response(200, [])

    client = await connect(await serve2(handler))
    stream = client.request(method="POST", body=b"object")
    await asyncio.wait_for(began.wait(), 5)
    client.send(frames.reset(stream, frames.CANCEL))
    await asyncio.wait_for(finished.wait(), 5)


async def test_a_response_before_the_end_of_its_request_cuts_the_request_off(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        return Response(413, [], b"too large")

    client = await connect(await serve2(handler))
    stream = client.request(method="POST", end=False)
    client.data(stream, b"x" * 1000)
    answer = await client.answer(stream)
    await client.until(lambda: answer.reset is not None)  # half a second after its last data
    assert (answer.status, answer.body, answer.ended, answer.reset) == (413, b"too large", True, frames.NO_ERROR)
    client.data(stream, b"x" * 1000)  # was in flight: the server ignores it
    assert (await client.get()).status == 413


async def test_a_request_that_is_answered_early_may_be_sent_to_its_end(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        return Response(403, [], b"forbidden")

    client = await connect(await serve2(handler))
    stream = client.request(method="POST", end=False)
    assert (await client.answer(stream)).status == 403
    for _ in range(20):
        client.data(stream, b"x" * STREAM_WINDOW)
        granted = client.windows.get(stream, 0)
        while client.windows.get(stream, 0) == granted:
            assert await client.next_frame() is not None
    client.data(stream, b"", end=True)
    assert (await client.get()).status == 403
    assert client.answers[stream].reset is None


async def test_a_failing_handler_is_answered_and_a_failing_stream_reset(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            writer.write(b"half")
            raise ValueError

        if request.path == "/stream":
            return StreamResponse(200, [], run)
        raise ValueError

    client = await connect(await serve2(handler))
    assert (await client.get("/")).status == 500
    answer = await client.answer(client.request("/stream"))
    assert (answer.ended, answer.reset) == (False, frames.INTERNAL_ERROR)


async def test_a_stopping_server_ends_watches_and_lets_requests_finish(serve2: Serve2, connect: Connect) -> None:
    go_on = asyncio.Event()

    async def handler(request: Request) -> Response:
        async def run(writer: StreamWriter) -> None:
            await asyncio.Event().wait()

        if request.path == "/watch":
            return StreamResponse(200, [], run, endless=True)
        await go_on.wait()
        return Response(200, [], b"done")

    server: HttpServer = await serve2(handler)
    client = await connect(server)
    watch, slow = client.request("/watch"), client.request("/slow")
    await client.until_received(watch)
    stopping = asyncio.create_task(server.stop(5))
    assert (await client.answer(watch)).ended
    await client.until(lambda: client.goaway)
    assert client.goaway is not None and client.goaway[:2] == (slow, frames.NO_ERROR)
    late = client.request("/late")
    go_on.set()
    assert (await client.answer(slow)).body == b"done"
    assert await client.until_closed() == frames.NO_ERROR
    assert late not in client.answers
    await stopping


async def test_a_handler_that_closes_the_connection_sends_goaway(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [(b"connection", b"close")], b"ok")

    client = await connect(await serve2(handler))
    answer = await client.get()
    assert (answer.body, "connection" in answer.headers) == (b"ok", False)
    assert await client.until_closed() == frames.NO_ERROR


@pytest.mark.parametrize("window", [1000, 1 << 30])
async def test_a_large_last_response_is_whole(serve2: Serve2, connect: Connect, window: int) -> None:
    body = bytes(range(256)) * 400

    async def handler(request: Request) -> Response:
        return Response(200, [(b"connection", b"close")], body)

    client = await connect(await serve2(handler), window)
    stream = client.request()
    await client.until_received(stream, min(window, len(body)))
    client.send(frames.window_update(stream, len(body)))
    assert (await client.answer(stream)).body == body
    assert await client.until_closed() == frames.NO_ERROR


async def test_options_asterisk_is_answered_by_the_server(serve2: Serve2, connect: Connect) -> None:
    client = await connect(await serve2(echo))
    answer = await client.answer(client.request("*", method="OPTIONS"))
    assert (answer.status, answer.body) == (200, b"")


async def test_an_idle_connection_is_closed_and_a_busy_one_stays(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        await asyncio.Event().wait()
        return Response(200, [])

    server = await serve2(handler)
    idle, busy = await connect(server), await connect(server)
    stream = busy.request()
    await eventually(settled(server, 1))
    now = asyncio.get_running_loop().time()
    for connection in list(server.state.connections):
        connection.check_idle(now + 91)  # type: ignore[union-attr]
    assert await idle.until_closed() == frames.NO_ERROR
    await busy.ping()
    busy.send(frames.reset(stream, frames.CANCEL))


async def test_closed_connections_leave_no_reference_cycles(serve2: Serve2, connect: Connect) -> None:
    async def handler(request: Request) -> Response:
        if request.path == "/wait":
            await asyncio.Event().wait()
        return Response(200, [], b"x" * 50_000)

    async def left() -> int:
        return sum(isinstance(found, Http2Protocol | Stream) for found in gc.get_objects())

    server = await serve2(handler)
    gc.collect()
    gc.disable()
    try:
        for number in range(6):
            client = await connect(server)
            await client.get()
            waiting = client.request("/wait")
            if number % 3 == 0:
                client.send(frames.reset(waiting, frames.CANCEL))
                await client.get()
            elif number % 3 == 1:
                client.send(b"no frame" * 20)
            await client.close()
        await eventually(left, lambda count: count == 0, timeout=10)
    finally:
        gc.enable()
