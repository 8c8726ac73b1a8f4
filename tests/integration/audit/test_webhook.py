"""The webhook backend with a real TLS server that works, fails, is slow and recovers; and its batches."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.audit.conftest import Audited
from support.server import running
from support.waiting import until
from support.webhook import HOLD, Answer, WebhookServer, webhook_server
from tetrapod.generic.audit.buffered import BatchConfig, Buffered
from tetrapod.generic.audit.event import Event
from tetrapod.generic.audit.metrics import ERROR_TOTAL
from tetrapod.generic.audit.webhook import WebhookBackend
from tetrapod.generic.webhook.kubeconfig import read_kubeconfig


@pytest.fixture
def receiver() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        server.on("/events", lambda _: Answer(200, b"", {}))
        yield server


def kubeconfig(directory: Path, receiver: WebhookServer, **user: Any) -> Path:
    cluster = {"server": f"{receiver.url}/events", "certificate-authority-data": receiver.ca_bundle}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "receiver", "cluster": cluster}],
        "users": [{"name": "server", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "receiver", "user": "server"}}],
        "current-context": "here",
    }
    path = directory / "webhook.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def event(name: str = "a") -> Event:
    document = {
        "level": "Metadata",
        "auditID": name,
        "stage": "ResponseComplete",
        "verb": "get",
        "requestURI": "/",
        "user": {},
    }
    return Event({**document, "requestReceivedTimestamp": "2026-01-02T03:04:05.120000Z"})


def received(receiver: WebhookServer) -> list[list[str]]:
    """Return the names of the events of each batch."""
    return [[item["auditID"] for item in body["items"]] for _, _, body in receiver.seen]


async def test_events_arrive_as_a_list_with_credentials(tmp_path: Path, receiver: WebhookServer) -> None:
    backend = WebhookBackend(read_kubeconfig(str(kubeconfig(tmp_path, receiver, token="secret"))), 0.01)
    assert await backend.process([event("a"), event("b")])
    await backend.close()
    ((line, headers, body),) = receiver.seen
    assert (
        line == "POST /events"
        and headers["authorization"] == "Bearer secret"
        and headers["content-type"] == "application/json"
    )
    assert (body["kind"], body["apiVersion"], body["metadata"]) == ("EventList", "audit.k8s.io/v1", {})
    assert [item["auditID"] for item in body["items"]] == ["a", "b"] and "kind" not in body["items"][0]


@pytest.mark.parametrize(
    "user",
    [{"tokenFile": "token"}, {"username": "u", "password": "p"}],
    ids=["a token's file", "a name and a password"],
)
async def test_all_types_of_credentials_are_sent(tmp_path: Path, receiver: WebhookServer, user: dict[str, str]) -> None:
    (tmp_path / "token").write_text("renewed\n")
    backend = WebhookBackend(read_kubeconfig(str(kubeconfig(tmp_path, receiver, **user))), 0.01)
    assert await backend.process([event()])
    await backend.close()
    expected = "Bearer renewed" if "tokenFile" in user else f"Basic {base64.b64encode(b'u:p').decode()}"
    assert receiver.seen[0][1]["authorization"] == expected


async def test_failed_batches_are_retried_until_the_receiver_recovers(tmp_path: Path, receiver: WebhookServer) -> None:
    answers: list[Any] = [Answer(500, b"broken"), Answer(404), b"no HTTP at all", Answer(200, b"", {})]
    receiver.on("/events", lambda _: answers.pop(0))
    backend = WebhookBackend(read_kubeconfig(str(kubeconfig(tmp_path, receiver))), 0.01)
    assert await backend.process([event()])
    await backend.close()
    assert not answers and len(receiver.seen) == 4


async def test_after_five_attempts_events_are_dropped_counted_and_logged(
    tmp_path: Path, receiver: WebhookServer, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.on("/events", lambda _: Answer(503, b"not now", {"content-type": "text/plain"}))
    lost = ERROR_TOTAL.values.get(("webhook",), 0)
    backend = WebhookBackend(read_kubeconfig(str(kubeconfig(tmp_path, receiver))), 0.01)
    assert not await backend.process([event("a"), event("b")])
    await backend.close()
    assert len(receiver.seen) == 5 and ERROR_TOTAL.values[("webhook",)] == lost + 2
    assert (
        "Error in audit plugin 'webhook' affecting 2 audit events: the server is currently unable to handle the request"
        in caplog.text
    )
    assert ' AUDIT: id="b" ' in caplog.text


async def test_a_receiver_without_a_response_times_out(tmp_path: Path, receiver: WebhookServer) -> None:
    answers: list[Any] = [HOLD, Answer(200, b"", {})]
    receiver.on("/events", lambda _: answers.pop(0))
    backend = WebhookBackend(read_kubeconfig(str(kubeconfig(tmp_path, receiver))), 0.01, timeout=0.2)
    assert await backend.process([event()])
    await backend.close()
    assert len(receiver.seen) == 2


async def test_a_receiver_with_a_certificate_of_another_ca_is_rejected(tmp_path: Path, receiver: WebhookServer) -> None:
    with webhook_server() as other:
        path = kubeconfig(tmp_path, receiver)
        path.write_text(path.read_text().replace(receiver.url, other.url))
        backend = WebhookBackend(read_kubeconfig(str(path)), 0.01)
        assert not await backend.process([event()])
        await backend.close()
        assert not other.seen


async def test_batches_are_sent_when_full_or_old_and_at_the_end(tmp_path: Path, receiver: WebhookServer) -> None:
    backend = Buffered(
        WebhookBackend(read_kubeconfig(str(kubeconfig(tmp_path, receiver))), 0.01),
        BatchConfig(max_size=2, max_wait=0.1),
    )
    for name in "abc":
        await backend.process([event(name)])
    await asyncio.to_thread(until, lambda: len(receiver.seen) == 2)
    assert received(receiver) == [["a", "b"], ["c"]]
    for name in "defgh":
        await backend.process([event(name)])
    await backend.close()
    assert sorted(name for batch in received(receiver) for name in batch) == list("abcdefgh")
    lost = ERROR_TOTAL.values.get(("buffered",), 0)
    assert await backend.process([event("late")])
    assert ERROR_TOTAL.values[("buffered",)] == lost + 1


async def test_a_slow_receiver_blocks_no_request_and_excess_events_are_dropped(
    tmp_path: Path, receiver: WebhookServer
) -> None:
    receiver.on("/events", lambda _: Answer(200, b"", {}, after=0.5))
    config = BatchConfig(buffer_size=2, max_size=1, throttle=False, concurrent=False)
    backend = Buffered(WebhookBackend(read_kubeconfig(str(kubeconfig(tmp_path, receiver))), 0.01), config)
    lost = ERROR_TOTAL.values.get(("buffered",), 0)
    async with asyncio.timeout(0.4):  # one after the other, ten batches of half a second each would take longer
        for i in range(10):
            assert await backend.process([event(str(i))])
            await asyncio.sleep(0.01)
    assert ERROR_TOTAL.values[("buffered",)] >= lost + 6
    await backend.close()
    assert received(receiver)[0] == ["0"] and 3 <= len(receiver.seen) <= 4


async def test_batches_are_throttled(tmp_path: Path, receiver: WebhookServer) -> None:
    config = BatchConfig(max_size=1, throttle_qps=20, throttle_burst=2)
    backend = Buffered(WebhookBackend(read_kubeconfig(str(kubeconfig(tmp_path, receiver))), 0.01), config)
    begun = asyncio.get_running_loop().time()
    for i in range(6):
        await backend.process([event(str(i))])
    await backend.close()
    assert asyncio.get_running_loop().time() - begun >= 0.15 and len(receiver.seen) == 6


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"current-context": "there"}, "context was not found for specified context: there"),
        ({"clusters": []}, "invalid configuration: no configuration has been provided"),
        (
            {"clusters": [{"name": "receiver", "cluster": {"tls-server-name": "x"}}]},
            'no server found for cluster "receiver"',
        ),
        ({"users": [{"name": "server", "user": {"exec": {}}}]}, ""),
        (
            {"users": [{"name": "server", "user": {"exec": {"command": "x"}}}]},
            "users of the kind exec cannot be used for a webhook",
        ),
    ],
)
def test_an_invalid_kubeconfig_is_rejected(
    tmp_path: Path, receiver: WebhookServer, change: dict[str, Any], problem: str
) -> None:
    path = kubeconfig(tmp_path, receiver)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    if not problem:
        read_kubeconfig(str(path))
        return
    with pytest.raises(ValueError, match=problem):
        read_kubeconfig(str(path))
    with pytest.raises(ValueError, match="stat /nonexistent: no such file or directory"):
        read_kubeconfig("/nonexistent")


def test_a_server_delivers_its_last_events_when_it_stops(tmp_path: Path, files: Path, receiver: WebhookServer) -> None:
    failing = [Answer(500), Answer(500)]
    receiver.on("/events", lambda _: failing.pop() if failing else Answer(200, b"", {}))
    flags = [
        "--audit-policy-file",
        str(files / "policy.yaml"),
        "--audit-webhook-config-file",
        str(kubeconfig(tmp_path, receiver)),
    ]
    flags += ["--audit-webhook-initial-backoff", "50ms", "--audit-webhook-batch-max-wait", "100ms"]
    with running(tmp_path / "data", "--token-auth-file", str(files / "tokens.csv"), *flags) as server:
        audited = Audited(server.url, tmp_path / "none")
        audited.ask("GET", "/version", audit_id="first")

        def arrived() -> bool:
            return any("first" in batch for batch in received(receiver)[2:])

        until(arrived)
        audited.ask("GET", "/version", audit_id="last")
    stages = [item["stage"] for _, _, body in receiver.seen for item in body["items"] if item["auditID"] == "last"]
    assert stages == ["RequestReceived", "ResponseComplete"]
