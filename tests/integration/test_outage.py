"""`tetrapod up` during failures: `kill -9`, an outage of its etcd, a second server on the same data; and its
shutdown.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from support.etcd import Etcd, running_etcd
from support.failing_starts import failed_start
from support.server import Server, command, environment, free_port, running, start
from support.waiting import until
from support.wire import Client, raw_connection

TOKENS: Final = f"--token-auth-file={Path(__file__).parents[1] / 'contract' / 'tokens.csv'}"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
SHUTDOWN_BUDGET: Final = 20

# Python's SSLSocket does not close a socket that is reset before its handshake begins, as `kill -9` does to clients.
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"),
]


def create(client: Client, name: str, data: str = "") -> int:
    return client("POST", MAPS, {"metadata": {"name": name}, "data": {"v": data}}).status


def names(client: Client, query: str = "") -> set[str]:
    answer = client("GET", f"{MAPS}?{query}")
    assert answer.status == 200, answer.body
    return {item["metadata"]["name"] for item in answer.json["items"]}


class Watching:
    """A watch of ConfigMaps in the default namespace, read by a thread. `events` ends with None."""

    def __init__(self, server: Server, query: str = "") -> None:
        self.events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.ended_well = False
        self._connection = raw_connection(server, timeout=120)
        self._tls = tls = self._connection.__enter__()
        tls.sendall(
            (
                f"GET {MAPS}?watch=1&{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin-token\r\n\r\n"
            ).encode()
        )
        self._response = http.client.HTTPResponse(tls)
        self._response.begin()
        self.status = self._response.status
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while line := self._response.readline():
                self.events.put(json.loads(line))
            self.ended_well = self._response.chunk_left is None and self._response.isclosed()
        except (OSError, http.client.HTTPException, ValueError):
            pass
        self.events.put(None)

    def wait_for(self, name: str, timeout: float = 30) -> bool:
        """Report whether an event of that object came before the end of the watch."""
        while (event := self.events.get(timeout=timeout)) is not None:
            if event["object"]["metadata"].get("name") == name:
                return True
        return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._tls.shutdown(socket.SHUT_RDWR)  # unblocks the reader
        self._thread.join(10)
        self._response.close()
        self._connection.__exit__(None, None, None)


@contextmanager
def watching(server: Server, query: str = "") -> Iterator[Watching]:
    watch = Watching(server, query)
    try:
        yield watch
    finally:
        watch.close()


# --- the process itself


def test_kill_9_under_writes_loses_no_acknowledged_write(tmp_path: Path) -> None:
    acknowledged: dict[str, str] = {}
    numbers = itertools.count()
    for life in range(3):
        server = start(tmp_path, TOKENS)
        stop = threading.Event()
        writers = [threading.Thread(target=_write, args=(server, acknowledged, numbers, stop)) for _ in range(4)]
        for writer in writers:
            writer.start()
        enough = (life + 1) * 100
        until(lambda: len(acknowledged), enough.__lt__)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        stop.set()
        for writer in writers:
            writer.join(30)
        assert not any(writer.is_alive() for writer in writers)
    with running(tmp_path, TOKENS) as server, Client(server) as client:
        found = {
            item["metadata"]["name"]: item["data"]["v"]
            for item in client("GET", MAPS).json["items"]
            if "v" in item.get("data", {})
        }
        for name, value in acknowledged.items():
            assert name in found, name
            assert int(found[name]) >= int(value), name


def _write(server: Server, acknowledged: dict[str, str], numbers: Iterator[int], stop: threading.Event) -> None:
    """Create and update until the server is killed."""
    with Client(server, timeout=10) as client:
        try:
            while not stop.is_set():
                name = f"m-{next(numbers)}"
                if create(client, name, "0") == 201:
                    acknowledged[name] = "0"
                changed = {"metadata": {"name": name}, "data": {"v": "1"}}
                if client("PUT", f"{MAPS}/{name}", changed).status == 200:
                    acknowledged[name] = "1"
        except (OSError, http.client.HTTPException):
            return


def test_a_second_process_on_the_same_data_is_rejected(tmp_path: Path) -> None:
    with running(tmp_path, TOKENS) as server, Client(server) as client:
        second = failed_start(tmp_path)
        assert second.code == 1
        assert "in use" in second.stderr
        assert create(client, "still-here") == 201


def test_a_taken_port_is_reported_in_a_line(tmp_path: Path) -> None:
    with running(tmp_path / "one", TOKENS) as server:
        port = server.url.rpartition(":")[2]
        second = failed_start(tmp_path / "two", f"--secure-port={port}")
        assert second.code == 1
        assert "address" in second.stderr.lower()


def test_sigterm_ends_open_watches_and_the_process(tmp_path: Path) -> None:
    server = start(tmp_path, TOKENS)
    with watching(server) as one, watching(server) as two:
        assert (one.status, two.status) == (200, 200)
        assert one.wait_for("kube-root-ca.crt")
        began = time.monotonic()
        assert server.stop(SHUTDOWN_BUDGET) == 0
        assert time.monotonic() - began < 5  # no client waits for them
        for watch in (one, two):
            watch.wait_for("")
            assert watch.ended_well
    assert "Traceback" not in server.log.read_text()


def test_sigterm_does_not_wait_for_clients_that_never_finish(tmp_path: Path) -> None:
    server = start(tmp_path, TOKENS)
    with raw_connection(server) as idle, raw_connection(server) as head, raw_connection(server) as body:
        idle.sendall(b"")
        head.sendall(b"GET / HT")
        body.sendall(
            (
                f"POST {MAPS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin-token\r\nContent-Length: 9\r\n\r\n{{"
            ).encode()
        )
        assert server.stop(SHUTDOWN_BUDGET) == 0
    assert "Traceback" not in server.log.read_text()


def test_sigterm_while_starting_ends_it(tmp_path: Path) -> None:
    argv = command(
        "up", "--data-dir", str(tmp_path), "--bind-address", "127.0.0.1", "--secure-port", str(free_port()), TOKENS
    )
    argv += ["--etcd-servers", f"http://127.0.0.1:{free_port()}"]  # nothing listens
    process = subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until(lambda: (tmp_path / "pki" / "ca.crt").exists() or process.poll() is not None)
    time.sleep(1)  # at any time during the start
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=SHUTDOWN_BUDGET)
    assert process.returncode == 0, output
    assert "Traceback" not in output


# --- its etcd


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    with running_etcd(tmp_path / "etcd") as member:
        yield member


@pytest.fixture
def server(tmp_path: Path, etcd: Etcd) -> Iterator[Server]:
    with running(tmp_path / "up", TOKENS, f"--etcd-servers={etcd.url}") as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server, timeout=60) as client:
        yield client


def rejected(client: Client) -> None:
    """A write fails with a Status that reports a server error, within a bounded time."""
    began = time.monotonic()
    answer = client("POST", MAPS, {"metadata": {"name": "lost"}})
    assert answer.status >= 500
    assert answer.json["kind"] == "Status"
    assert time.monotonic() - began < 45


@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["stopped", "frozen"])
def test_reads_of_the_cache_go_on_without_etcd_and_all_recovers(
    etcd: Etcd, server: Server, client: Client, how: str
) -> None:
    assert create(client, "before") == 201
    with watching(server) as watch:
        assert watch.wait_for("before")
        etcd.stop() if how == "stopped" else etcd.pause()
        assert client("GET", f"{MAPS}/before?resourceVersion=0").status == 200
        assert "before" in names(client, "resourceVersion=0")
        assert client("GET", "/livez/ping").status == 200
        rejected(client)
        assert "before" in names(client, "resourceVersion=0")
        etcd.start() if how == "stopped" else etcd.resume()
        until(lambda: client("GET", "/readyz").status == 200)
        until(lambda: create(client, "after") in (201, 409))
        assert {"before", "after"} <= names(client)
        if not watch.wait_for("after", 60):
            with watching(server) as again:  # it was ended, so watchers list again
                assert again.wait_for("after")
    assert "Traceback" not in server.log.read_text()


def test_sigterm_ends_the_process_while_etcd_is_gone(etcd: Etcd, server: Server, client: Client) -> None:
    assert create(client, "before") == 201
    with watching(server) as watch:
        assert watch.wait_for("before")
        etcd.stop()
        assert server.stop(SHUTDOWN_BUDGET) == 0
    assert "Traceback" not in server.log.read_text()


def test_sigterm_ends_the_process_while_etcd_is_frozen(etcd: Etcd, server: Server, client: Client) -> None:
    with watching(server) as watch:
        assert watch.wait_for("kube-root-ca.crt")
        etcd.pause()
        stuck = threading.Thread(target=_ask_in_vain, args=(server,))
        stuck.start()
        assert server.stop(SHUTDOWN_BUDGET) == 0
        stuck.join(30)
    assert "Traceback" not in server.log.read_text()


def _ask_in_vain(server: Server) -> None:
    with Client(server, timeout=30) as client:
        try:
            create(client, "never")
        except (OSError, http.client.HTTPException):
            return
