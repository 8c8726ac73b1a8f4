"""Priority and fairness on a running server: which requests are executed, queued or rejected, and the debug pages.

A test keeps a request in its seat by not sending the end of its body.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server import Server, running
from support.waiting import until
from tetrapod.machinery.golang.durations import parse_duration

TOKENS = 'admin-token,admin,u-admin,"system:masters"\nslow-token,slow,u-slow\nquick-token,quick,u-quick\n'
GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
DUMPS = "/debug/api_priority_and_fairness/"
BODY = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("flowcontrol")
    tokens = directory / "tokens.csv"
    tokens.write_text(TOKENS)
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata", "users": ["slow"]}]}
    (directory / "policy.json").write_text(json.dumps(policy))
    with running(
        directory / "data",
        f"--token-auth-file={tokens}",
        "--max-requests-inflight=20",
        "--max-mutating-requests-inflight=10",
        f"--audit-policy-file={directory / 'policy.json'}",
        f"--audit-log-path={directory / 'audit.log'}",
    ) as up:
        yield up


def context(server: Server) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(server.ca))


def ask(
    server: Server, path: str, user: str = "admin", method: str = "GET", body: Any = None
) -> tuple[int, dict[str, str], str]:
    headers = {"Authorization": f"Bearer {user}-token", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, context=context(server), timeout=20) as answer:
            return answer.status, dict(answer.headers.items()), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers.items()), error.read().decode()


def level(server: Server, name: str, response: dict[str, Any]) -> None:
    """Create a priority level with one seat that it can neither lend nor borrow, and a FlowSchema that assigns the user
    `slow` to it.
    """
    spec = {"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "limitResponse": response}
    body: Any = {
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": spec},
    }
    assert (
        ask(server, f"{GROUP}/prioritylevelconfigurations", method="POST", body={"apiVersion": GROUP[6:], **body})[0]
        == 201
    )
    rules = [
        {
            "subjects": [{"kind": "User", "user": {"name": "slow"}}],
            "resourceRules": [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
            ],
        }
    ]
    schema = {"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": name}, "rules": rules}
    body = {"apiVersion": GROUP[6:], "kind": "FlowSchema", "metadata": {"name": name}, "spec": schema}
    assert ask(server, f"{GROUP}/flowschemas", method="POST", body=body)[0] == 201
    until(
        lambda: (
            row(server, name) is not None and uid(server, name) == ask(server, "/api/v1/pods", "slow")[1].get(HEADER)
        )
    )


HEADER = "X-Kubernetes-Pf-Prioritylevel-Uid"


def uid(server: Server, name: str) -> str:
    found: str = json.loads(ask(server, f"{GROUP}/prioritylevelconfigurations/{name}")[2])["metadata"]["uid"]
    return found


def remove(server: Server, name: str) -> None:
    for resource in ("flowschemas", "prioritylevelconfigurations"):
        assert ask(server, f"{GROUP}/{resource}/{name}", method="DELETE")[0] == 200


def row(server: Server, name: str) -> list[str] | None:
    lines = ask(server, DUMPS + "dump_priority_levels")[2].splitlines()
    cells = ([cell.strip() for cell in line.split(",")] for line in lines)
    return next((cell for cell in cells if cell[0] == name), None)


class Held:
    """A request of `slow` that keeps its seat until `finish`.

    The user has no permissions, so the response is a 403 at the end.
    """

    def __init__(self, server: Server) -> None:
        host, port = server.url.removeprefix("https://").split(":")
        self.socket = context(server).wrap_socket(socket.create_connection((host, int(port))), server_hostname=host)
        head = (
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: x\r\n"
            "Authorization: Bearer slow-token\r\n"
        )
        head += f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
        self.socket.sendall(head.encode())

    def finish(self) -> bytes:
        self.socket.sendall(BODY)
        answer = self.socket.recv(4096)
        self.socket.close()
        return answer


def waits_of(log: str) -> list[float]:
    """Return the seconds in queues that audit events are annotated with."""
    annotations = [json.loads(line).get("annotations", {}) for line in log.splitlines()]
    waits = [found.get("apiserver.latency.k8s.io/apf-queue-wait") for found in annotations]
    return [parse_duration(wait) for wait in waits if wait is not None]


def test_a_full_level_rejects_with_retry_after_and_other_levels_are_served(server: Server) -> None:
    level(server, "rejecting", {"type": "Reject"})
    held = Held(server)
    until(lambda: (row(server, "rejecting") or [""] * 6)[5] == "1")
    code, headers, text = ask(server, "/api/v1/pods", "slow")
    assert (code, headers["Retry-After"], text) == (429, "1", "Too many requests, please try again later.\n")
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert ask(server, "/api/v1/pods", "quick")[0] == 403
    assert ask(server, "/api/v1/pods")[0] == 200
    assert held.finish().startswith(b"HTTP/1.1 400")
    until(lambda: ask(server, "/api/v1/pods", "slow")[0] == 403)
    assert 'reason="concurrency-limit"' in ask(server, "/metrics")[2]
    remove(server, "rejecting")


def test_a_request_waits_in_its_queue_for_a_seat(server: Server) -> None:
    level(server, "queuing", {"type": "Queue", "queuing": {"queues": 2, "handSize": 1, "queueLengthLimit": 5}})
    first, second = Held(server), Held(server)
    until(lambda: (row(server, "queuing") or [""] * 6)[4:6] == ["1", "1"])
    requests = ask(server, DUMPS + "dump_requests?includeRequestDetails=1")[2]
    assert sum("selfsubjectaccessreviews" in line and "slow" in line for line in requests.splitlines()) == 2
    assert any(
        line.split(",")[2].strip() == "1"
        for line in ask(server, DUMPS + "dump_queues")[2].splitlines()
        if line.startswith("queuing")
    )
    threading.Event().wait(0.5)  # shorter requests have no annotations
    first.finish()
    until(lambda: (row(server, "queuing") or [""] * 6)[4:6] == ["0", "1"])
    second.finish()
    log = server.log.parent.parent / "audit.log"
    assert until(lambda: waits_of(log.read_text()))[-1] > 0.5
    until(lambda: (row(server, "queuing") or [""] * 6)[2] == "true")
    remove(server, "queuing")
    until(lambda: row(server, "queuing") is None)


def test_a_client_that_disconnects_while_queued_frees_its_place(server: Server) -> None:
    level(server, "leaving", {"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 5}})
    first, second = Held(server), Held(server)
    until(lambda: (row(server, "leaving") or [""] * 6)[4:6] == ["1", "1"])
    second.socket.close()
    first.finish()
    until(lambda: (row(server, "leaving") or [""] * 6)[2] == "true")
    assert ask(server, "/api/v1/pods", "slow")[0] == 403
    remove(server, "leaving")


def test_responses_name_schema_and_level_and_masters_are_exempt(server: Server) -> None:
    _, headers, _ = ask(server, "/api/v1/namespaces/default")
    assert headers[HEADER] == uid(server, "exempt")
    _, headers, _ = ask(server, "/api/v1/namespaces/default", "quick")
    assert headers[HEADER] == uid(server, "global-default")
    schema = json.loads(ask(server, f"{GROUP}/flowschemas/global-default")[2])
    assert headers["X-Kubernetes-Pf-Flowschema-Uid"] == schema["metadata"]["uid"]


def test_priority_and_fairness_can_be_disabled(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--enable-priority-and-fairness=false") as up:
        request = urllib.request.Request(up.url + "/readyz")
        with urllib.request.urlopen(request, context=context(up)) as answer:
            assert HEADER not in answer.headers
