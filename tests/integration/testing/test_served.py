"""Aggregated API servers that `tetrapod.testing` runs behind its server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tetrapod.generic.aggregated import Kind
from tetrapod.testing import ApiError, Server

API_VERSION = "library.example.com/v1"
BOOK = Kind(API_VERSION, "Book", {"type": "object", "properties": {"spec": {"type": "object"}}})
ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [library.example.com], resources: [books], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: jane, namespace: default}]
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.serve([BOOK])
        yield server


def book(name: str) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "Book", "metadata": {"name": name}}


def names(server: Server) -> list[str]:
    return [each["metadata"]["name"] for each in server.client.list(API_VERSION, "Book")]


def test_a_reset_restores_the_objects_of_the_aggregated_server(server: Server) -> None:
    server.client.create(book("first"))
    state = server.snapshot()
    server.client.create(book("second"))
    server.client.delete(API_VERSION, "Book", "first")
    server.reset(state)
    assert names(server) == ["first"]


def test_a_reset_to_the_start_unregisters_the_aggregated_server(server: Server) -> None:
    server.client.create(book("first"))
    server.reset()
    with pytest.raises(ApiError) as caught:
        server.client.request("GET", f"/apis/{API_VERSION}/books")
    assert caught.value.code == 404


def test_a_second_server_of_the_same_name_is_rejected(server: Server) -> None:
    with pytest.raises(ValueError, match="already an aggregated server with the name 'aggregated'"):
        server.serve([BOOK])


def test_a_change_of_rbac_applies_to_the_next_request(server: Server) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "jane", "namespace": "default"}}
    server.client.create(account)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    token = server.client.request("POST", "/api/v1/namespaces/default/serviceaccounts/jane/token", request)
    jane = server.connect(token["status"]["token"])
    with pytest.raises(ApiError) as caught:
        jane.request("GET", f"/apis/{API_VERSION}/books")
    assert caught.value.reason == "Forbidden"
    server.apply(ROLE)
    server.settle()
    assert jane.request("GET", f"/apis/{API_VERSION}/books")["items"] == []


def test_the_aggregated_server_meets_all_requirements_of_the_aggregation_layer(server: Server) -> None:
    assert server.check(API_VERSION) == []


def test_a_group_version_that_is_not_served_does_not_meet_the_requirements(server: Server) -> None:
    assert "discovery" in [finding.check for finding in server.check("library.example.com/v2")]
