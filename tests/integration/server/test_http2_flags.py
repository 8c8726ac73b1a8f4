"""The flags of HTTP/2, and the ends of its streams and connections, as clients of a server process observe them."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.failing_starts import start_error
from support.forms import feature_gates
from support.http2_client import Answer, Http2Client
from support.server import Server, running
from support.waiting import eventually
from tetrapod.generic.http2 import frames

pytestmark = pytest.mark.long

MAPS = "/api/v1/namespaces/default/configmaps"
TOKENS = 'admin-token,admin,u-admin,"system:masters"\n'
TOKEN = ("authorization", "Bearer admin-token")
JSON = ("content-type", "application/json")
STREAMS = 5
NOT_OLDER = "&resourceVersionMatch=NotOlderThan"
LONG_RUNNING = re.compile(r"^apiserver_longrunning_requests\{.*resource=\"configmaps\".*\} (\d+)$", re.MULTILINE)


def tokens(directory: Path) -> str:
    path = directory / "tokens.csv"
    path.write_text(TOKENS)
    return f"--token-auth-file={path}"


@contextlib.asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Http2Client]:
    context = ssl.create_default_context(cafile=str(server.ca))
    client = await Http2Client.connect(urlsplit(server.url).port or 0, context)
    await client.until(lambda: client.settings)
    try:
        yield client
    finally:
        await client.close()


async def watch(client: Http2Client, query: str = "") -> int:
    """Begin to watch the ConfigMaps, and return the stream of the watch once its first event has arrived."""
    stream = client.request(f"{MAPS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true{NOT_OLDER}{query}", TOKEN)
    await client.until_received(stream, 1)
    return stream


async def create(client: Http2Client, name: str) -> None:
    body = json.dumps({"metadata": {"name": name}}).encode()
    created = await client.answer(client.request(MAPS, TOKEN, JSON, method="POST", body=body))
    assert created.status == 201, created.body


def names(body: bytes) -> set[str]:
    return {json.loads(line)["object"]["metadata"].get("name", "") for line in body.splitlines()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose limits are small."""
    directory = tmp_path_factory.mktemp("http2")
    flags = f"--http2-max-streams-per-connection={STREAMS}", "--request-timeout=2s", tokens(directory)
    with running(directory / "data", *flags) as server:
        yield server


async def test_as_many_streams_are_announced_and_accepted_as_the_flag_says(server: Server) -> None:
    async with connected(server) as client:
        assert client.settings[frames.MAX_CONCURRENT_STREAMS] == STREAMS
        watches = [await watch(client) for _ in range(STREAMS)]
        assert (await client.answer(client.request(f"{MAPS}/none", TOKEN))).reset == frames.REFUSED_STREAM
        client.send(frames.reset(watches[0], frames.CANCEL))
        assert (await client.get(f"{MAPS}/none", TOKEN)).status == 404


async def test_a_body_that_does_not_end_is_answered_at_its_deadline_and_other_streams_go_on(server: Server) -> None:
    async with connected(server) as client:
        watched = await watch(client)
        endless = [client.request(MAPS, TOKEN, JSON, method="POST", end=False) for _ in range(STREAMS - 1)]
        for stream in endless:
            client.data(stream, b'{"metadata": {"name": "endless"')
        for stream in endless:
            answer = await client.answer(stream)
            assert (answer.status, json.loads(answer.body)["reason"]) == (504, "Timeout")
        await client.until(lambda: all(client.answers[stream].reset is not None for stream in endless))
        assert [client.answers[stream].reset for stream in endless] == [frames.NO_ERROR] * len(endless)
        await create(client, "after-deadlines")
        await client.until(lambda: "after-deadlines" in names(client.answers[watched].body))


async def test_the_timeout_of_a_watch_ends_its_stream_only(server: Server) -> None:
    async with connected(server) as client:
        short, long = await watch(client, "&timeoutSeconds=1"), await watch(client)
        assert (await client.answer(short)).ended
        await create(client, "after-a-watch")
        await client.until(lambda: "after-a-watch" in names(client.answers[long].body))
        assert client.goaway is None


async def test_a_reset_ends_the_watch_in_the_server(server: Server) -> None:
    async with connected(server) as client, connected(server) as other:

        async def running_watches() -> int:
            metrics = (await other.get("/metrics", TOKEN)).body.decode()
            return sum(int(count) for count in LONG_RUNNING.findall(metrics))

        before = await running_watches()
        watches = [await watch(client) for _ in range(STREAMS)]
        assert await running_watches() == before + STREAMS
        for stream in watches:
            client.send(frames.reset(stream, frames.CANCEL))
        await eventually(running_watches, lambda count: count == before)


def left_or_answered(client: Http2Client, stream: int) -> bool:
    return client.goaway is not None or client.answers.setdefault(stream, Answer()).ended


async def test_a_client_is_asked_to_leave_by_chance_and_its_watch_goes_on(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--goaway-chance=0.02", tokens(tmp_path)) as server:
        async with connected(server) as client, connected(server) as other:
            watched = await watch(client)
            answered = watched
            while client.goaway is None:
                stream = client.request(f"{MAPS}/none", TOKEN)
                assert stream < 4000  # 2,000 requests without a GOAWAY are less likely than 1 in 10^17
                await client.until(partial(left_or_answered, client, stream))
                if client.answers[stream].ended:
                    answered = stream
            assert client.goaway[:2] == (answered, frames.NO_ERROR)
            await create(other, "after-goaway")
            await client.until(lambda: "after-goaway" in names(client.answers[watched].body))
            client.send(frames.reset(watched, frames.CANCEL))
            assert await client.until_closed() == frames.NO_ERROR


@pytest.mark.parametrize("header", [(), (("authorization", "Bearer other"),)], ids=["anonymous", "rejected"])
@pytest.mark.parametrize("mitigated", [True, False])
async def test_connections_without_credentials_are_closed_unless_a_gate_keeps_them(
    tmp_path: Path, header: tuple[tuple[str, str], ...], mitigated: bool
) -> None:
    gate = feature_gates(["UnauthenticatedHTTP2DOSMitigation"], enabled=mitigated)
    with running(tmp_path / "data", gate, tokens(tmp_path)) as server:
        async with connected(server) as client:
            assert (await client.get(f"{MAPS}/none", TOKEN)).status == 404
            watched = await watch(client)
            answer = await client.get("/readyz", *header)
            assert answer.status == (401 if header else 200)
            if mitigated:
                await client.until(lambda: client.goaway is not None)
                assert client.goaway is not None
                assert client.goaway[1] == frames.NO_ERROR
                client.send(frames.reset(watched, frames.CANCEL))
                assert await client.until_closed() == frames.NO_ERROR
            else:
                assert (await client.get(f"{MAPS}/none", TOKEN)).status == 404
                assert client.goaway is None


@pytest.mark.parametrize("chance", ["0.021", "-0.01"])
def test_a_chance_beyond_upstreams_range_is_rejected(tmp_path: Path, chance: str) -> None:
    error = start_error(tmp_path, f"--goaway-chance={chance}")
    assert "--goaway-chance can not be less than 0 or greater than 0.02" in error


def test_http2_can_be_disabled(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--disable-http2-serving") as server:
        context = ssl.create_default_context(cafile=str(server.ca))
        context.set_alpn_protocols(["h2", "http/1.1"])
        address = urlsplit(server.url)
        with (
            socket.create_connection((address.hostname, address.port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            assert connection.selected_alpn_protocol() == "http/1.1"


async def test_a_server_that_is_stopped_ends_watches_and_completes_requests(tmp_path: Path) -> None:
    with running(tmp_path / "data", tokens(tmp_path)) as server:
        async with connected(server) as client:
            watched = await watch(client)
            written = client.request(MAPS, TOKEN, JSON, method="POST", end=False)
            client.data(written, b'{"metadata": {"name": "begun"}')
            await client.ping()
            server.process.send_signal(signal.SIGTERM)
            assert (await client.answer(watched)).ended
            await client.until(lambda: client.goaway)
            assert client.goaway is not None
            assert client.goaway[:2] == (written, frames.NO_ERROR)
            client.data(written, b"}", end=True)
            assert (await client.answer(written)).status == 201
            assert await client.until_closed() == frames.NO_ERROR
            assert server.process.wait(30) == 0
