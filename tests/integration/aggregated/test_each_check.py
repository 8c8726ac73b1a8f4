"""Each check of `tetrapod check-apiserver` against a server that meets all requirements but one."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from support.http_server import Answered, Asked, http_server
from tetrapod.generic.aggregated.check_client import CheckClient
from tetrapod.generic.aggregated.checks import CHECKS, Subject, run_checks
from tetrapod.generic.certificates.authority import Authority
from tetrapod.machinery.gvk import GroupVersion

GROUP, ROOT = "things.example.com", "/apis/things.example.com/v1"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
NAMES = [name for name, _, _ in CHECKS]


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any = field(default_factory=dict)
    content_type: str = "application/json"

    @property
    def kind(self) -> str:
        return str(self.body.get("kind")) if isinstance(self.body, dict) else ""

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    def but(self, **changes: Any) -> Answer:
        """Return the answer with other values in its object."""
        return replace(self, body={**self.body, **changes})


def failure(code: int, reason: str) -> Answer:
    return Answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})


class Correct:
    """A server that meets all requirements, for the cluster-scoped resource `things` without any object."""

    def __call__(self, asked: Asked) -> Answer:
        if asked.path == "/readyz":
            return Answer(200, b"ok")
        if not asked.certificate:
            return failure(401, "Unauthorized")
        if asked.path.startswith(f"{ROOT}/things") and asked.headers.get("x-remote-group") != "system:masters":
            return failure(403, "Forbidden")
        documents: dict[str, Callable[[Asked], Answer]] = {
            "/apis": self.groups,
            ROOT: self.resources,
            "/openapi/v3": lambda _: Answer(200, {"paths": {ROOT[1:]: {"serverRelativeURL": "/openapi/v3/things"}}}),
            "/openapi/v3/things": self.openapi,
            f"{ROOT}/things": self.collection,
        }
        document = documents.get(asked.path)
        return failure(404, "NotFound") if document is None else document(asked)

    def groups(self, _: Asked) -> Answer:
        versions = [{"version": "v1", "resources": []}]
        items = [{"metadata": {"name": GROUP}, "versions": versions}]
        return Answer(200, {"kind": "APIGroupDiscoveryList", "items": items}, AGGREGATED)

    def resources(self, _: Asked) -> Answer:
        verbs = ["create", "get", "list", "watch"]
        thing = {"name": "things", "singularName": "thing", "namespaced": False, "kind": "Thing", "verbs": verbs}
        return Answer(200, {"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1", "resources": [thing]})

    def openapi(self, _: Asked) -> Answer:
        gvk = [{"group": GROUP, "version": "v1", "kind": "Thing"}]
        return Answer(200, {"components": {"schemas": {"Thing": {"x-kubernetes-group-version-kind": gvk}}}})

    def collection(self, asked: Asked) -> Answer:
        if asked.method == "POST":
            return self.create(asked)
        if "watch=1" in asked.query:
            event = {"type": "BOOKMARK", "object": {"kind": "Thing", "metadata": {"resourceVersion": "1"}}}
            return Answer(200, json.dumps(event).encode() + b"\n")
        if "as=Table" in asked.headers["accept"]:
            row = {"cells": ["a"], "object": {}}
            return Answer(200, {"kind": "Table", "columnDefinitions": [{"name": "Name"}], "rows": [row]})
        return Answer(200, {"kind": "ThingList", "metadata": {"resourceVersion": "1"}, "items": []})

    def create(self, asked: Asked) -> Answer:
        if asked.headers["content-type"] != "application/json":
            return failure(415, "UnsupportedMediaType")
        try:
            return Answer(201, json.loads(asked.body))
        except ValueError:
            return failure(400, "BadRequest")


class Storing(Correct):
    """A server that stores objects of dry runs."""

    def __init__(self) -> None:
        self.stored = False

    def __call__(self, asked: Asked) -> Answer:
        answer = super().__call__(asked)
        self.stored = self.stored or answer.status == 201
        return Answer(200, {"kind": "Thing"}) if is_named(asked) and self.stored else answer


Change = Callable[[Asked, Answer], Answer]
FAULTS: dict[str, Change] = {
    "ready": lambda asked, answer: Answer(500) if asked.path == "/readyz" else answer,
    "discovery": lambda asked, answer: answer.but(groupVersion="other/v1") if asked.path == ROOT else answer,
    "accepts identity headers of the front proxy": lambda asked, answer: (
        failure(401, "Unauthorized") if asked.path == ROOT and "x-remote-user" in asked.headers else answer
    ),
    "rejects identity headers of others": lambda asked, answer: (
        Correct()(asked._replace(certificate=True)) if not asked.certificate else answer
    ),
    "authorizes requests": lambda asked, answer: (
        Correct()(asked._replace(headers={**asked.headers, "x-remote-group": "system:masters"}))
        if answer.status == 403
        else answer
    ),
    "aggregated discovery": lambda asked, answer: (
        replace(answer, content_type="application/json") if asked.path == "/apis" else answer
    ),
    "OpenAPI": lambda asked, answer: Answer(200, {"components": {}}) if asked.path == "/openapi/v3/things" else answer,
    "lists": lambda asked, answer: answer.but(items=None) if answer.kind == "ThingList" else answer,
    "tables": lambda asked, answer: (
        answer.but(rows=[{"cells": []}]) if "as=Table" in asked.headers["accept"] else answer
    ),
    "watches": lambda asked, answer: Answer(200, b"[1]\n") if "watch=1" in asked.query else answer,
    "missing objects": lambda asked, answer: Answer(404, b"404 page not found") if is_named(asked) else answer,
    "bad bodies": lambda asked, answer: failure(500, "InternalError") if answer.status == 400 else answer,
}


@dataclass(frozen=True)
class Certificates:
    directory: Path

    @property
    def ca(self) -> Path:
        return self.directory / "ca.crt"

    def pair(self, name: str) -> tuple[Path, Path]:
        return self.directory / f"{name}.crt", self.directory / f"{name}.key"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    authority = Authority.create("ca")
    made.ca.write_bytes(authority.certificate_pem)
    for name, issued in (
        ("proxy", authority.issue_client("front")),
        ("server", authority.issue_server("things", ["localhost", "things.default.svc"])),
        ("other", authority.issue_server("things", ["localhost"])),
    ):
        for file, content in zip(made.pair(name), issued, strict=True):
            file.write_bytes(content)
    return made


def is_named(asked: Asked) -> bool:
    """Return whether a request is for one thing."""
    return asked.path.startswith(f"{ROOT}/things/")


@contextmanager
def serving(certificates: Certificates, pair: str, answer: Callable[[Asked], Answer]) -> Iterator[str]:
    def answered(asked: Asked) -> Answered:
        returned = answer(asked)
        return Answered(returned.status, returned.encoded(), {"content-type": returned.content_type})

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificates.pair(pair))
    context.load_verify_locations(certificates.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    with http_server(answered, context) as port:
        yield f"https://127.0.0.1:{port}"


def failed(certificates: Certificates, answer: Callable[[Asked], Answer], pair: str = "server") -> list[str]:
    """Return the names of the checks that fail. Checks may be skipped only if another fails."""
    with serving(certificates, pair, answer) as url:
        client = CheckClient(url, *certificates.pair("proxy"), certificates.ca, "things.default.svc")
        findings = list(run_checks(Subject(client, GroupVersion(GROUP, "v1"))))
    assert [finding.check for finding in findings] == NAMES
    failures = [finding.check for finding in findings if finding.outcome == "fail"]
    assert failures or all(finding.outcome == "pass" for finding in findings), findings
    return failures


def test_a_correct_server_passes_every_check(certificates: Certificates) -> None:
    assert failed(certificates, Correct()) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_that_violates_one_requirement_fails_its_check(certificates: Certificates, name: str) -> None:
    correct, change = Correct(), FAULTS[name]
    found = failed(certificates, lambda asked: change(asked, correct(asked)))
    # Rejected headers fail discovery too. Without discovery, the checks of resources are skipped.
    assert found == (["discovery", name] if name == "accepts identity headers of the front proxy" else [name])


def test_a_server_that_stores_objects_of_dry_runs_fails_the_check(certificates: Certificates) -> None:
    assert failed(certificates, Storing()) == ["dry runs"]


def test_a_certificate_without_the_name_of_the_service_fails_the_check(certificates: Certificates) -> None:
    assert failed(certificates, Correct(), "other") == ["certificate"]


def test_every_check_has_a_fault_here_and_a_row_in_the_documentation() -> None:
    assert {*FAULTS, "dry runs", "certificate"} == set(NAMES)
    document = (Path(__file__).parents[3] / "docs/reference/extending.md").read_text()
    assert [name for name, why, _ in CHECKS if f"| {name} | {why} |" not in document] == []
