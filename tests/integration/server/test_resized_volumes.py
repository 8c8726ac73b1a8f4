"""`pods/resize` of emptyDir volumes in memory, behind the gate InPlacePodVerticalScalingMemoryBackedVolumes.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.forms import SQLITE, STOCK, serving
from support.https_client import HttpsClient, Reply
from support.service_accounts import ensure_service_account

GATE = "InPlacePodVerticalScalingMemoryBackedVolumes"
PODS = "/api/v1/namespaces/default/pods"


def _volumes(memory: str | None = "100Mi", disk: str = "100Mi") -> list[dict[str, Any]]:
    limit = {} if memory is None else {"sizeLimit": memory}
    return [
        {"name": "memory", "emptyDir": {"medium": "Memory", **limit}},
        {"name": "disk", "emptyDir": {"sizeLimit": disk}},
    ]


def _pod(client: HttpsClient, name: str, node: str) -> dict[str, Any]:
    ensure_service_account(client)
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}], "volumes": _volumes()}
    reply = client.call("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    assert reply.status == 201, reply.message
    return dict(reply.body)


def _resize(client: HttpsClient, pod: dict[str, Any], volumes: list[dict[str, Any]]) -> Reply:
    meta = {key: value for key, value in pod["metadata"].items() if key != "resourceVersion"}
    body = {**pod, "metadata": meta, "spec": {**pod["spec"], "volumes": volumes}}
    path = f"{PODS}/{meta['name']}/resize"
    # The caches of kube-apiserver may lack the node.
    return client.until(lambda reply: "not found" not in reply.message, "PUT", path, body)


def _token(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the volume that the admission plugin ServiceAccount has added to the pod."""
    return dict(pod["spec"]["volumes"][2])


def _node(client: HttpsClient, name: str, *features: str) -> None:
    assert client.call("POST", "/api/v1/nodes", {"metadata": {"name": name}}).status == 201
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {"capacity": capacity, "allocatable": capacity, "declaredFeatures": list(features)}
    reply = client.call("PUT", f"/api/v1/nodes/{name}/status", {"metadata": {"name": name}, "status": status})
    assert reply.status == 200, reply.message


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_size_limits_in_memory_change_with_the_gate_on_a_node_that_declares_it(form: str, tmp_path: Path) -> None:
    with serving(form, tmp_path, f"--feature-gates={GATE}=true") as client:
        _node(client, "able", GATE)
        _node(client, "unable")
        pod = _pod(client, "p", "able")
        reply = _resize(client, pod, [*_volumes(memory="200Mi"), _token(pod)])
        assert reply.status == 200, reply.message
        assert reply.body["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] == "200Mi"
        assert reply.body["metadata"]["generation"] == 2
        pod = _pod(client, "q", "unable")
        reply = _resize(client, pod, [*_volumes(memory="200Mi"), _token(pod)])
        text = f'pod update requires features {GATE} which are not available on node "unable"'
        assert (reply.status, text in reply.message) == (403, True)


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_other_changes_of_volumes_are_rejected_with_the_gate(form: str, tmp_path: Path) -> None:
    with serving(form, tmp_path, f"--feature-gates={GATE}=true") as client:
        _node(client, "able", GATE)
        pod = _pod(client, "p", "able")
        memory, disk = _volumes()
        token = _token(pod)

        def causes(volumes: list[dict[str, Any]]) -> list[tuple[str, str]]:
            reply = _resize(client, pod, volumes)
            assert reply.status == 422, reply.message
            return [(cause["field"], cause["message"]) for cause in reply.body["details"]["causes"]]

        assert causes([memory, token]) == [
            ("spec.volumes", "Forbidden: volumes may not be added or removed on resize"),
        ]
        assert causes([disk, memory, token]) == [
            ("spec.volumes[0].name", "Forbidden: volumes may not be renamed or reordered on resize"),
            ("spec.volumes[1].name", "Forbidden: volumes may not be renamed or reordered on resize"),
        ]
        assert causes([{"name": "memory", "emptyDir": {"sizeLimit": "100Mi"}}, disk, token]) == [
            ("spec.volumes[0]", "Forbidden: only sizeLimit of memory-backed emptyDir volumes is mutable on resize"),
        ]
        assert causes([*_volumes(memory=None, disk="200Mi"), token]) == [
            (
                "spec.volumes[0].emptyDir.sizeLimit",
                "Forbidden: adding or removing sizeLimit on an existing volume is not allowed",
            ),
            (
                "spec.volumes[1].emptyDir.sizeLimit",
                "Forbidden: sizeLimit is only mutable for memory-backed emptyDir volumes",
            ),
        ]


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_a_resize_keeps_the_volumes_without_the_gate(form: str, tmp_path: Path) -> None:
    with serving(form, tmp_path) as client:
        _node(client, "n")
        pod = _pod(client, "p", "n")
        reply = _resize(client, pod, [])
        assert (reply.status, reply.body["spec"]["volumes"]) == (200, pod["spec"]["volumes"])
        assert reply.body["metadata"]["generation"] == 1
