"""A user sends a flood of a thousand HTTP/2 streams on one connection, while another user sends single requests.

Nothing is timed. The audit log shows in which order the server received and answered the requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.http2_connection import Http2Connection, http2_context
from support.server import Server, running
from support.wire import Client

TOKENS = 'admin-token,admin,u-admin,"system:masters"\nflood-token,flood,u-flood\nquick-token,quick,u-quick\n'
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
MAPS = "/api/v1/namespaces/default/configmaps"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
STREAMS = 1000
MOST = 20
"""Requests of the flood that may be answered from the moment when a request of the other user is received until it is
answered. Measured: at most two.
"""


@pytest.fixture
def audit_log(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


@pytest.fixture
def server(tmp_path: Path, audit_log: Path) -> Iterator[Server]:
    (tmp_path / "tokens.csv").write_text(TOKENS)
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    with running(
        tmp_path / "data",
        f"--token-auth-file={tmp_path / 'tokens.csv'}",
        f"--audit-policy-file={tmp_path / 'policy.json'}",
        f"--audit-log-path={audit_log}",
        f"--http2-max-streams-per-connection={STREAMS}",
    ) as server:
        with Client(server) as admin:
            subjects = [
                {"apiGroup": BINDINGS.split("/")[2], "kind": "User", "name": name} for name in ("flood", "quick")
            ]
            role = {"apiGroup": BINDINGS.split("/")[2], "kind": "ClusterRole", "name": "view"}
            binding = {"metadata": {"name": "viewers"}, "roleRef": role, "subjects": subjects}
            assert admin("POST", BINDINGS, binding).status == 201
            for number in range(50):
                body = {"metadata": {"name": f"c{number}"}, "data": {"x": "y" * 500}}
                assert admin("POST", MAPS, body).status == 201
        yield server


def connect(server: Server) -> Http2Connection:
    address = urlsplit(server.url)
    assert address.hostname is not None
    assert address.port is not None
    return Http2Connection(address.hostname, address.port, http2_context(server.ca), 60)


def test_a_thousand_streams_of_one_user_delay_no_request_of_another(server: Server, audit_log: Path) -> None:
    token = "authorization", "Bearer flood-token"
    flood = connect(server)
    with Client(server, "quick-token", timeout=60, http2=True) as quick, ThreadPoolExecutor() as thread:
        statuses = [quick("GET", f"{MAPS}/c1").status]
        streams = flood.begin([("GET", f"{MAPS}?labelSelector=none", [token])] * STREAMS)
        flooding = thread.submit(flood.receive_all, streams)
        while not flooding.done():
            statuses.append(quick("GET", f"{MAPS}/c1").status)
    flood.close()
    assert {stream.status for stream in streams} <= {200, 429}
    assert set(statuses) == {200}
    between = answered_between(audit_log)
    assert len(between) > 10
    assert max(between) <= MOST, between


def answered_between(audit_log: Path) -> list[int]:
    """Return how many requests of the flood were answered while each request of the other user was."""
    answered, counts = 0, []
    received: dict[str, int] = {}
    for line in audit_log.read_text().splitlines():
        event = json.loads(line)
        user, stage = event["user"]["username"], event["stage"]
        if user == "flood" and stage == "ResponseComplete" and event["responseStatus"]["code"] == 200:
            answered += 1
        elif user == "quick" and stage == "RequestReceived":
            received[event["auditID"]] = answered
        elif user == "quick" and stage == "ResponseComplete":
            counts.append(answered - received[event["auditID"]])
    return counts
