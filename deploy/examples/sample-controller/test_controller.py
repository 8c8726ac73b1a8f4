"""The promises of sample-controller, kept by both controllers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tetrapod.testing import ApiError, Server

API_VERSION = "samplecontroller.example.com/v1alpha1"
pytestmark = pytest.mark.usefixtures("controller")


def foo(server: Server, replicas: int = 1) -> dict[str, Any]:
    spec = {"deploymentName": "web", "replicas": replicas}
    created = {"apiVersion": API_VERSION, "kind": "Foo", "metadata": {"name": "example"}, "spec": spec}
    return server.client.create(created)


def deployment(server: Server) -> dict[str, Any] | None:
    try:
        return server.client.get("apps/v1", "Deployment", "web")
    except ApiError:
        return None


def replicas(server: Server) -> int | None:
    found = deployment(server)
    return found["spec"]["replicas"] if found else None


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 30
    while not (result := condition()):
        assert time.monotonic() < deadline, "the condition is not met after 30 s"
        time.sleep(0.02)
    return result


def events(server: Server, reason: str) -> list[str]:
    return [each["message"] for each in server.client.list("v1", "Event") if each["reason"] == reason]


def test_a_foo_gets_its_deployment(tetrapod: Server) -> None:
    created = foo(tetrapod, 3)
    made = until(lambda: deployment(tetrapod))
    assert (made["spec"]["replicas"], made["metadata"]["labels"]["controller"]) == (3, "example")
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Foo", created["metadata"]["uid"], True)
    assert "Foo synced successfully" in until(lambda: events(tetrapod, "Synced"))


def test_the_replicas_of_the_foo_are_those_of_the_deployment(tetrapod: Server) -> None:
    foo(tetrapod, 1)
    until(lambda: replicas(tetrapod) == 1)
    tetrapod.client.patch(API_VERSION, "Foo", "example", {"spec": {"replicas": 4}})
    until(lambda: replicas(tetrapod) == 4)
    tetrapod.client.patch("apps/v1", "Deployment", "web", {"spec": {"replicas": 9}})
    until(lambda: replicas(tetrapod) == 4)


def test_a_deleted_deployment_is_created_again(tetrapod: Server) -> None:
    foo(tetrapod)
    first = until(lambda: deployment(tetrapod))["metadata"]["uid"]
    tetrapod.client.delete("apps/v1", "Deployment", "web")
    until(lambda: (found := deployment(tetrapod)) and found["metadata"]["uid"] != first)


def test_the_status_has_the_available_replicas(tetrapod: Server) -> None:
    foo(tetrapod, 2)
    until(lambda: deployment(tetrapod))
    status = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    tetrapod.client.patch("apps/v1", "Deployment", "web", {"status": status}, subresource="status")
    until(lambda: tetrapod.client.get(API_VERSION, "Foo", "example").get("status") == {"availableReplicas": 2})


def test_a_deployment_of_somebody_else_is_not_changed(tetrapod: Server) -> None:
    labels = {"app": "other"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": 7, "selector": {"matchLabels": labels}, "template": pod}
    tetrapod.client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    foo(tetrapod)
    message = 'Resource "web" already exists and is not managed by Foo'
    assert message in until(lambda: events(tetrapod, "ErrResourceExists"))
    assert replicas(tetrapod) == 7
    tetrapod.client.delete("apps/v1", "Deployment", "web")  # then the controller creates its own
    until(lambda: replicas(tetrapod) == 1)
