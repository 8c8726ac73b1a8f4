"""`pods/resize` without the gates of pod-level resources and of init containers.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.forms import SQLITE, STOCK, feature_gates, serving
from support.https_client import HttpsClient, Reply, causes, created, patched
from support.service_accounts import ensure_service_account
from tetrapod.machinery.gvk import Object

STRATEGIC: Final = "application/strategic-merge-patch+json"
POD_LEVEL: Final = "InPlacePodLevelResourcesVerticalScaling"
INIT: Final = "InPlacePodVerticalScalingInitContainers"
OFF: Final = ("--emulated-version=1.36", feature_gates([POD_LEVEL, INIT], enabled=False))
PODS: Final = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module", params=[SQLITE, STOCK])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("off"), *OFF) as client:
        ensure_service_account(client)
        yield client


def requesting(name: str, cpu: str, **fields: Any) -> Object:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}, **fields}


def create(client: HttpsClient, name: str, **spec: Any) -> None:
    created(client, PODS, {"metadata": {"name": name}, "spec": {"containers": [requesting("c", "1")], **spec}})


def resized(client: HttpsClient, name: str, **spec: Any) -> Reply:
    return client.call("PATCH", f"{PODS}/{name}/resize", {"spec": spec}, STRATEGIC)


def test_pods_with_pod_level_resources_are_not_resized(client: HttpsClient) -> None:
    create(client, "level", resources={"requests": {"cpu": "2"}})
    assert causes(resized(client, "level", containers=[requesting("c", "500m")])) == [
        f"[]: Forbidden: resize of pods with pod-level resources is forbidden when {POD_LEVEL}Enabled feature gate is "
        "disabled"
    ]


def test_new_pod_level_resources_are_ignored(client: HttpsClient) -> None:
    create(client, "new-level")
    reply = resized(client, "new-level", containers=[requesting("c", "2")], resources={"requests": {"cpu": "3"}})
    assert reply.status == 200, reply
    assert reply.body["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert "resources" not in reply.body["spec"]


def test_pod_level_resources_of_the_status_are_dropped(client: HttpsClient) -> None:
    create(client, "status")
    status = {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}, "message": "m"}
    stored = patched(client, f"{PODS}/status/status", {"status": status})
    assert stored["status"].keys() & status.keys() == {"message"}


def test_init_containers_are_not_resized(client: HttpsClient) -> None:
    create(client, "init", initContainers=[requesting("i", "1")])
    forbidden = ["spec: Forbidden: resources for non-sidecar init containers are immutable"]
    assert causes(resized(client, "init", initContainers=[requesting("i", "500m")])) == forbidden
    removed = {"name": "i", "resources": {"requests": {"cpu": None}}}
    assert causes(resized(client, "init", initContainers=[removed])) == forbidden


def test_sidecars_are_resized(client: HttpsClient) -> None:
    create(client, "sidecar", initContainers=[requesting("i", "1", restartPolicy="Always")])
    reply = resized(client, "sidecar", initContainers=[requesting("i", "2")])
    assert reply.status == 200, reply
    assert reply.body["spec"]["initContainers"][0]["resources"] == {"requests": {"cpu": "2"}}
