"""A server with an audit log, and access to its events by the Audit-ID of a request."""

from __future__ import annotations

import http.client
import itertools
import json
import ssl
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.server import Server, running
from support.service_accounts import wait_for_service_account
from support.waiting import until

TOKENS = 'admin-token,admin,u-admin,"system:masters"\nalice-token,alice,u-alice,"developers"\n'
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, users: ["system:apiserver"]}
- {level: None, nonResourceURLs: ["/readyz*"]}
- {level: Metadata, users: [alice]}
- {level: Request, namespaces: [requested]}
- {level: RequestResponse, namespaces: [unmanaged], omitManagedFields: true, omitStages: [RequestReceived]}
- {level: RequestResponse}
"""
_numbers = itertools.count()


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes
    audit_id: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Audited:
    """A client of an audited server. `events` waits until the last stage of a request has been written."""

    def __init__(self, url: str, log: Path) -> None:
        self.host, self.log = url.removeprefix("https://"), log

    def ask(
        self, method: str, path: str, body: Any = None, token: str = "admin-token", audit_id: str = "", **headers: str
    ) -> Answer:
        """Send a request. Header names are given with underscores."""
        audit_id = audit_id or f"test-{next(_numbers)}"
        sent = {"audit-id": audit_id, "user-agent": "tests", "content-type": "application/json"}
        sent |= {"authorization": f"Bearer {token}"} if token else {}
        connection = http.client.HTTPSConnection(self.host, context=ssl._create_unverified_context(), timeout=30)
        try:
            data = body if body is None or isinstance(body, str) else json.dumps(body)
            connection.request(
                method, path, data, sent | {key.replace("_", "-"): value for key, value in headers.items()}
            )
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read(), audit_id)
        finally:
            connection.close()

    def lines(self) -> list[Any]:
        text = self.log.read_bytes() if self.log.exists() else b""
        return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]

    def events(self, audit_id: str, last: str = "ResponseComplete") -> list[Any]:
        found: list[Any] = []

        def complete() -> bool:
            found[:] = [event for event in self.lines() if event["auditID"] == audit_id]
            return any(event["stage"] == last for event in found)

        until(complete)
        return found

    def last(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request and return its last event."""
        return self.events(self.ask(*args, **kwargs).audit_id)[-1]


def config_map(name: str = "a", **more: Any) -> Any:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, **more}


def legacy_token(audited: Audited, name: str) -> str:
    """Create a Secret with a token and return the token."""
    path = "/api/v1/namespaces/default"
    wait_for_service_account(audited.ask)
    metadata = {"name": name, "annotations": {"kubernetes.io/service-account.name": "default"}}
    audited.ask("POST", f"{path}/secrets", {"metadata": metadata, "type": "kubernetes.io/service-account-token"})
    until(lambda: "token" in (audited.ask("GET", f"{path}/secrets/{name}").json.get("data") or {}))
    return b64decode(audited.ask("GET", f"{path}/secrets/{name}").json["data"]["token"]).decode()


@pytest.fixture(scope="package")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("audit")
    (directory / "policy.yaml").write_text(POLICY)
    (directory / "tokens.csv").write_text(TOKENS)
    return directory


@pytest.fixture(scope="package")
def server(files: Path) -> Iterator[Server]:
    flags = ["--audit-policy-file", str(files / "policy.yaml"), "--audit-log-path", str(files / "logs" / "audit.log")]
    flags += ["--token-auth-file", str(files / "tokens.csv"), "--runtime-config=resource.k8s.io/v1beta2=true"]
    with running(files / "data", *flags) as found:
        yield found


@pytest.fixture(scope="package")
def audited(files: Path, server: Server) -> Audited:
    found = Audited(server.url, files / "logs" / "audit.log")
    for name in ("requested", "unmanaged", "strict"):
        labels = {"pod-security.kubernetes.io/audit": "restricted", "pod-security.kubernetes.io/enforce": "privileged"}
        assert found.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}).status == 201
    return found
