"""Events, which two API groups serve from the same storage."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.server import Server, running
from support.wire import Client
from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import GroupVersionKind

NEW, OLD = "/apis/events.k8s.io/v1/namespaces/default/events", "/api/v1/namespaces/default/events"
EVENT = {
    "eventTime": "2026-11-21T19:48:48.554000Z",
    "reportingController": "tests",
    "reportingInstance": "one",
    "action": "dance",
    "reason": "Music",
    "regarding": {"kind": "Namespace", "name": "default", "apiVersion": "v1"},
    "note": "yeah",
    "type": "Normal",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("events")
    (directory / "tokens.csv").write_text('admin-token,admin,1,"system:masters"\n')
    with running(directory, f"--token-auth-file={directory}/tokens.csv") as server:
        yield server


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, **EVENT}


def fields_of(event: dict[str, Any]) -> tuple[str, str, str]:
    """Return the object and the reason of an event of either group."""
    about = event.get("regarding") or event["involvedObject"]
    return event["apiVersion"], about["name"], event.get("note") or event["message"]


AS_NEW, AS_OLD = ("events.k8s.io/v1", "default", "yeah"), ("v1", "default", "yeah")


@pytest.mark.parametrize("order", [(NEW, OLD), (OLD, NEW)])
def test_a_protobuf_event_has_the_group_of_the_request(server: Server, order: tuple[str, str]) -> None:
    name = f"message-{order[0].count('/')}"
    with Client(server) as client:
        assert client("POST", NEW, named(name)).status == 201
        found = {}
        for path in order:
            group = "events.k8s.io" if path is NEW else ""
            answer = client("GET", f"{path}/{name}", headers={"Accept": "application/vnd.kubernetes.protobuf"})
            found[path] = fields_of(protobuf.decode(answer.body, GroupVersionKind(group, "v1", "Event")))
        assert found == {NEW: AS_NEW, OLD: AS_OLD}


@contextmanager
def watch(server: Server, path: str) -> Iterator[http.client.HTTPResponse]:
    address = urlsplit(server.url)
    context = ssl.create_default_context(cafile=str(server.ca))
    connection = http.client.HTTPSConnection(str(address.hostname), address.port, context=context, timeout=30)
    connection.request(
        "GET", f"{path}?watch=1&fieldSelector=metadata.name=seen", headers={"Authorization": "Bearer admin-token"}
    )
    response = connection.getresponse()
    assert response.status == 200
    try:
        yield response
    finally:
        response.close()
        connection.close()


def test_watches_of_both_groups_receive_their_own_version(server: Server) -> None:
    with watch(server, NEW) as new, watch(server, OLD) as old, Client(server) as client:
        assert client("POST", NEW, named("seen")).status == 201
        assert fields_of(json.loads(new.readline())["object"]) == AS_NEW
        assert fields_of(json.loads(old.readline())["object"]) == AS_OLD


@pytest.mark.parametrize(
    ("path", "api_version", "expected"), [(NEW, "v1", "events.k8s.io/v1"), (OLD, "events.k8s.io/v1", "v1")]
)
def test_an_event_of_the_other_group_has_the_wrong_version(
    server: Server, path: str, api_version: str, expected: str
) -> None:
    with Client(server) as client:
        answer = client("POST", path, {"kind": "Event", "apiVersion": api_version, "metadata": {"name": "e"}})
    text = f"the API version in the data ({api_version}) does not match the expected API version ({expected})"
    assert (answer.status, json.loads(answer.body)["message"]) == (400, text)
