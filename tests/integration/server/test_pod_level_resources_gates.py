"""Pods with requests and limits at pod level: without the gate PodLevelResources, and without its two fixes.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.etcd import running_etcd
from support.forms import ETCD, SQLITE, STOCK, feature_gates, serving, serving_over
from support.https_client import MERGE, HttpsClient, created, patched
from support.service_accounts import ensure_service_account
from tetrapod.machinery.gvk import Object

FIXES: Final = ("PodLevelResourcesFixDefaulting", "PodLevelResourcesFixKubeletQOSClass")
GATES: Final = ("PodLevelResources", "InPlacePodLevelResourcesVerticalScaling", *FIXES)
PODS: Final = "/api/v1/namespaces/default/pods"
TEMPLATES: Final = "/api/v1/namespaces/default/podtemplates"
QUOTAS: Final = "/api/v1/namespaces/default/resourcequotas"
LIMITS: Final = "/api/v1/namespaces/default/limitranges"
TWO: Final[Object] = {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}


@pytest.fixture(scope="module", params=[ETCD, STOCK])
def disabled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    """A server without the gate, over a store that a server with the gate has written before."""
    directory = tmp_path_factory.mktemp("gates")
    with running_etcd(directory / "etcd") as etcd:
        with serving_over(etcd, request.param, directory / "enabled") as client:
            ensure_service_account(client)
            create(client, "kept", resources=TWO)
            create(client, "empty", resources={})
        off = feature_gates(GATES, enabled=False)
        with serving_over(etcd, request.param, directory / "disabled", off) as client:
            ensure_service_account(client)
            yield client


@pytest.fixture(scope="module", params=[SQLITE, STOCK])
def clients(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HttpsClient, HttpsClient]]:
    """A server without the fixes, and one with them."""
    off = feature_gates(FIXES, enabled=False)
    with (
        serving(request.param, tmp_path_factory.mktemp("unfixed"), off) as unfixed,
        serving(request.param, tmp_path_factory.mktemp("default")) as default,
    ):
        for client in (unfixed, default):
            ensure_service_account(client)
        yield unfixed, default


@pytest.fixture
def unfixed(clients: tuple[HttpsClient, HttpsClient]) -> HttpsClient:
    return clients[0]


@pytest.fixture
def default(clients: tuple[HttpsClient, HttpsClient]) -> HttpsClient:
    return clients[1]


def pod(name: str, *containers: Object, **spec: Any) -> Object:
    listed = [
        {"name": f"c{number}", "image": "i", "resources": resources} for number, resources in enumerate(containers)
    ]
    return {"metadata": {"name": name}, "spec": {"containers": listed or [{"name": "c", "image": "i"}], **spec}}


def create(client: HttpsClient, name: str, *containers: Object, **spec: Any) -> Object:
    body: Object = created(client, PODS, pod(name, *containers, **spec))
    return body


def test_new_pods_have_no_resources_at_pod_level(disabled: HttpsClient) -> None:
    body = create(disabled, "new", resources=TWO)
    assert "resources" not in body["spec"]
    assert body["status"]["qosClass"] == "BestEffort"
    invalid = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    assert "resources" not in create(disabled, "invalid", resources=invalid)["spec"]
    template = created(disabled, TEMPLATES, {"metadata": {"name": "t"}, "template": pod("t", resources=TWO)})
    assert "resources" not in template["template"]["spec"]


def test_stored_pods_keep_their_pod_level_resources(disabled: HttpsClient) -> None:
    spec = patched(disabled, f"{PODS}/kept", {"metadata": {"labels": {"a": "b"}}})["spec"]
    assert spec["resources"] == TWO
    # an empty field does not count as used: it is dropped, which is a change that is not allowed
    reply = disabled.call("PATCH", f"{PODS}/empty", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert reply.status == 422
    assert '+ "Resources": null,' in reply.message


def test_quotas_charge_the_containers(disabled: HttpsClient, request: pytest.FixtureRequest) -> None:
    hard = {"requests.cpu": "10"}
    created(disabled, QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    if request.node.callspec.params["disabled"] == STOCK:  # it runs without its controllers
        patched(disabled, f"{QUOTAS}/q/status", {"status": {"hard": hard, "used": {"requests.cpu": "0"}}})
    else:
        # If the controller counted a new quota while a pod is created, it would miss the pod, as upstream.
        disabled.until(lambda reply: "used" in reply.body.get("status", {}), "GET", f"{QUOTAS}/q")
    reply = disabled.until(lambda reply: reply.status == 403, "POST", f"{PODS}?dryRun=All", pod("q", resources=TWO))
    assert "must specify requests.cpu for: c" in reply.message
    create(disabled, "charged", {"requests": {"cpu": "1"}}, resources=TWO)
    used = disabled.call("GET", f"{QUOTAS}/q").body["status"]["used"]
    assert used == {"requests.cpu": "1"}
    disabled.call("DELETE", f"{QUOTAS}/q")


def test_limit_ranges_add_up_the_containers(disabled: HttpsClient) -> None:
    body = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}}
    created(disabled, LIMITS, body)
    reply = disabled.until(
        lambda reply: reply.status == 403, "POST", f"{PODS}?dryRun=All", pod("l", {"limits": {"cpu": "3"}})
    )
    assert "maximum cpu usage per Pod is 2, but limit is 3" in reply.message
    create(disabled, "limited", {"limits": {"cpu": "1"}}, resources={"limits": {"cpu": "5"}})
    disabled.call("DELETE", f"{LIMITS}/l")


REQUESTS: Final = ({"requests": {"cpu": "1", "memory": "1Gi"}}, {"limits": {"cpu": "1", "memory": "1Gi"}})
PAGES: Final = {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}


def test_former_defaults_need_limits_at_pod_level(unfixed: HttpsClient) -> None:
    given = {"requests": {"cpu": "3"}}
    assert create(unfixed, "requested", *REQUESTS, resources=given)["spec"]["resources"] == given
    body = create(unfixed, "limited", *REQUESTS, resources={"limits": {"cpu": "3"}})
    assert body["spec"]["resources"] == {"limits": {"cpu": "3"}, "requests": {"cpu": "2", "memory": "2Gi"}}
    body = create(unfixed, "paged", PAGES, resources={"requests": {"cpu": "1"}})
    assert body["spec"]["resources"] == {
        "limits": {"hugepages-2Mi": "4Mi"},
        "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"},
    }


def test_present_defaults_include_limits(default: HttpsClient) -> None:
    body = create(default, "requested", *REQUESTS, resources={"requests": {"cpu": "3"}})
    assert body["spec"]["resources"] == {"requests": {"cpu": "3", "memory": "2Gi"}}
    body = create(default, "paged", PAGES, resources={"requests": {"cpu": "1"}})
    assert body["spec"]["resources"] == {
        "limits": {"cpu": "1", "hugepages-2Mi": "4Mi"},
        "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"},
    }


def test_an_update_without_the_field_is_rejected_without_the_fix(unfixed: HttpsClient, default: HttpsClient) -> None:
    for client, status in ((unfixed, 422), (default, 200)):
        create(client, "updated", resources={"requests": {"cpu": "1"}})
        reply = client.call("PATCH", f"{PODS}/updated", {"spec": {"resources": None}}, MERGE)
        assert reply.status == status, reply


def test_an_empty_field_decides_the_class_without_the_fix(unfixed: HttpsClient, default: HttpsClient) -> None:
    for client, qos_class in ((unfixed, "BestEffort"), (default, "Burstable")):
        body = create(client, "empty", {"requests": {"cpu": "1"}}, resources={})
        assert body["status"]["qosClass"] == qos_class


def test_resizes_get_no_defaults_without_the_fix(unfixed: HttpsClient, default: HttpsClient) -> None:
    for client, expected in ((unfixed, {"cpu": "3"}), (default, {"cpu": "3", "memory": "2Gi"})):
        create(client, "resized", *REQUESTS, resources={"requests": {"cpu": "2"}})
        change = {"spec": {"resources": {"requests": {"cpu": "3"}}}}
        reply = client.call("PATCH", f"{PODS}/resized/resize", change, MERGE)
        assert reply.status == 200, reply
        assert reply.body["spec"]["resources"] == {"requests": expected}
