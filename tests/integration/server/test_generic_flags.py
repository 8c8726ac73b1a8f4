"""The flags that upstream calls generic: startup, watches and shutdown, as clients observe them."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from support.failing_starts import start_error
from support.https_client import HttpsClient
from support.server import Server, running
from support.services import Services
from support.waiting import until


def probe(url: str) -> tuple[int, str]:
    """Return the status and body of an anonymous GET; 0 if the server does not listen yet."""
    try:
        with urllib.request.urlopen(url, context=ssl._create_unverified_context(), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def test_livez_succeeds_in_the_grace_period_although_hooks_have_not_finished(tmp_path: Path) -> None:
    services = Services(tmp_path, replicas={"aggregator": 2})
    services.etcd.start()
    try:
        services.start("aggregator", "--livez-grace-period=1h")  # its hooks wait for the other services
        services.start("aggregator-2")
        for key, code in (("aggregator", 200), ("aggregator-2", 500)):
            url = services.address(key)
            answer = until(partial(probe, f"{url}/livez?verbose"), lambda reply: reply[0] != 0)
            assert answer[0] == code, answer
            assert probe(f"{url}/readyz")[0] == probe(f"{url}/healthz")[0] == 500
    finally:
        services.stop_all(*services.processes)
        services.etcd.stop()


def test_watch_without_timeout_ends_after_the_minimum_request_timeout(tmp_path: Path) -> None:
    with running(tmp_path, "--min-request-timeout=1") as server:
        client = HttpsClient(server.kubeconfig)
        assert client.call("GET", "/api/v1/namespaces?watch=1&fieldSelector=metadata.name=none").status == 200


def test_a_version_with_a_suffix_is_reported(tmp_path: Path) -> None:
    with running(tmp_path, "--version=v1.37.1-custom") as server:
        client = HttpsClient(server.kubeconfig)
        assert client.call("GET", "/version").body["gitVersion"] == "v1.37.1-custom"


def begin_create(server: Server) -> http.client.HTTPSConnection:
    """Begin to create a ConfigMap, whose body ends when the caller sends `}`."""
    connection = server.connect()
    connection.putrequest("POST", "/api/v1/namespaces/default/configmaps")
    body = b'{"metadata": {"name": "a"}'
    for name, value in (("content-type", "application/json"), ("content-length", str(len(body) + 1))):
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(body)
    return connection


def ask(server: Server) -> tuple[int, str | None, str | None, bytes]:
    """Return the status of a GET on a new connection, two headers and the body."""
    with closing(server.connect()) as connection:
        connection.request("GET", "/api")
        reply = connection.getresponse()
        return reply.status, reply.getheader("retry-after"), reply.getheader("connection"), reply.read()


def test_new_requests_get_429_until_the_requests_in_flight_have_ended(tmp_path: Path) -> None:
    with running(tmp_path, "--shutdown-send-retry-after") as server, closing(begin_create(server)) as creating:
        assert ask(server)[0] == 200  # the create has been received, too
        server.process.terminate()
        text = b"The apiserver is shutting down, please try again later.\n"
        assert until(partial(ask, server), lambda reply: reply[0] != 200) == (429, "5", "close", text)
        creating.send(b"}")
        assert creating.getresponse().status == 201
        assert server.process.wait(60) == 0


@pytest.mark.parametrize("flags", [(), ("--shutdown-send-retry-after",)])
def test_watch_ends_with_a_complete_body_in_the_grace_period(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with (
        running(tmp_path, "--shutdown-watch-termination-grace-period=30s", *flags) as server,
        closing(server.connect()) as watching,
    ):
        watching.request("GET", "/api/v1/namespaces?watch=1&fieldSelector=metadata.name=none")
        reply = watching.getresponse()
        server.process.terminate()
        assert reply.read() == b""  # IncompleteRead, if the body were cut off
        assert server.process.wait(60) == 0


@pytest.mark.parametrize("flag", ["livez-grace-period=-1s", "min-request-timeout=-1", "max-requests-inflight=-1"])
def test_negative_values_are_rejected(tmp_path: Path, flag: str) -> None:
    name = flag.partition("=")[0]
    article = "a " if name == "livez-grace-period" else ""
    assert start_error(tmp_path, f"--{flag}") == f"Error: --{name} can not be {article}negative value"


def test_timeouts_of_zero_are_the_defaults_in_the_checks_of_the_store(tmp_path: Path) -> None:
    with running(tmp_path, "--etcd-healthcheck-timeout=0s", "--etcd-readycheck-timeout=0s") as server:
        reply = HttpsClient(server.kubeconfig).call("GET", "/readyz?verbose")
        assert (reply.status, "[+]etcd ok" in reply.body, "[+]etcd-readiness ok" in reply.body) == (200, True, True)
