"""Existing and missing paths and methods; subresources; custom resources."""

from __future__ import annotations

import pytest

from integration.endpoints.serving import Api

MAPS = "/api/v1/namespaces/n/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/n/deployments"
WIDGETS = "/apis/example.com/v1/namespaces/n/widgets"
MERGE = "application/merge-patch+json"


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/configmaps/x",
        "/api/v1/namespaces/n/nodes",
        f"{MAPS}/x/status",
        f"{MAPS}/x/y/z",
        "/api/v1/namespaces/n/cm",
        f"{DEPLOYMENTS}/x/scale/y",
    ],
)
async def test_unknown_paths_are_404_without_details(api: Api, target: str) -> None:
    answer = await api("GET", target)
    assert (answer.status, answer.json["details"]) == (404, {})
    assert answer.json["message"] == "the server could not find the requested resource"


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("PUT", MAPS),
        ("PATCH", MAPS),
        ("HEAD", MAPS),
        ("POST", "/api/v1/configmaps"),
        ("POST", f"{MAPS}/x"),
        ("DELETE", f"{DEPLOYMENTS}/x/scale"),
    ],
)
async def test_unsupported_methods_are_405(api: Api, method: str, target: str) -> None:
    assert (await api(method, target)).status == 405


async def test_a_proxy_accepts_every_method_and_subpath(api: Api) -> None:
    assert (await api("OPTIONS", f"{MAPS}/x/proxy/a/b")).body == b"OPTIONS x /a/b"
    assert (await api("GET", f"{MAPS}/x/proxy")).body == b"GET x "


async def make_deployment(api: Api) -> None:
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    assert (await api("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})).status == 201


async def test_a_status_update_does_not_change_the_spec(api: Api) -> None:
    await make_deployment(api)
    answer = await api(
        "PATCH", f"{DEPLOYMENTS}/d/status", {"spec": {"replicas": 9}, "status": {"replicas": 1}}, content_type=MERGE
    )
    assert (answer.json["spec"]["replicas"], answer.json["status"]) == (2, {"replicas": 1})
    assert [entry.get("subresource") for entry in answer.json["metadata"]["managedFields"]] == [None, "status"]


async def test_a_scale_shows_and_sets_the_replicas(api: Api) -> None:
    await make_deployment(api)
    scale = (await api("GET", f"{DEPLOYMENTS}/d/scale")).json
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 2},
        {"replicas": 0, "selector": "app=d"},
    )
    scale["spec"]["replicas"] = 4
    assert (await api("PUT", f"{DEPLOYMENTS}/d/scale", scale)).json["spec"] == {"replicas": 4}
    assert (await api("PUT", f"{DEPLOYMENTS}/d/scale", scale)).json["reason"] == "Conflict"
    entries = (await api("GET", f"{DEPLOYMENTS}/d")).json["metadata"]["managedFields"]
    assert [entry["fieldsV1"] for entry in entries if entry.get("subresource") == "scale"] == [
        {"f:spec": {"f:replicas": {}}}
    ]
    negative = await api("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}}, content_type=MERGE)
    assert (
        negative.json["message"]
        == 'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )


async def test_custom_objects_are_pruned_and_defaulted(api: Api) -> None:
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "bogus": 1},
        "spec": {"size": 1, "other": 2},
    }
    created = await api("POST", WIDGETS, body)
    assert (created.status, created.json["spec"]) == (201, {"size": 1, "color": "blue"})
    assert created.warnings == ['unknown field "metadata.bogus"', 'unknown field "spec.other"']
    (item,) = (await api("GET", WIDGETS)).json["items"]
    assert (item["kind"], item["apiVersion"]) == ("Widget", "example.com/v1")
    other = (await api("GET", f"{WIDGETS.replace('v1', 'v2')}/w")).json
    assert other == {**created.json, "apiVersion": "example.com/v2"}


async def test_invalid_requests_for_custom_resources_are_rejected(api: Api) -> None:
    no_kind = await api("POST", WIDGETS, b'{"apiVersion": "example.com/v1"}')
    assert "Object 'Kind' is missing in '{\"apiVersion\": \"example.com/v1\"}'" in no_kind.json["message"]
    no_version = await api("POST", WIDGETS, {"kind": "Widget"})
    assert (
        no_version.json["message"]
        == "the API version in the data () does not match the expected API version (example.com/v1)"
    )
    gadget = await api("POST", WIDGETS, {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}})
    assert gadget.json["message"] == 'Gadget.example.com "g" is invalid: kind: Invalid value: "Gadget": must be Widget'
    metadata = await api("POST", WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": "w"})
    assert metadata.json["message"].endswith("json: cannot unmarshal string into Go value of type v1.ObjectMeta")
    assert (await api("PUT", WIDGETS, {})).json["message"] == "name must be provided"
    assert (await api("GET", f"{WIDGETS}/w/status")).json["message"] == 'widgets.example.com "w" not found'
    strategic = await api("PATCH", f"{WIDGETS}/w", {}, content_type="application/strategic-merge-patch+json")
    assert strategic.status == 415


async def test_a_name_with_invalid_utf_8_is_escaped_in_the_response(api: Api) -> None:
    answer = await api("GET", f"{MAPS}/\udcff")
    assert (answer.status, answer.json["details"]["name"]) == (404, "\ufffd")
    assert answer.json["message"] == 'configmaps "\\xff" not found'


async def test_a_namespace_that_is_not_utf_8_is_empty_in_the_cache_and_in_the_store(api: Api) -> None:
    for resource_version in ("", "&resourceVersion=0", "&resourceVersion=2&resourceVersionMatch=Exact"):
        answer = await api("GET", f"/api/v1/namespaces/\udcff/configmaps?limit=5{resource_version}")
        assert (answer.status, answer.json["items"]) == (200, [])


@pytest.mark.parametrize("target", ["/api/v1/namespaces/../configmaps", "/api/v1/namespaces/../configmaps/x"])
async def test_a_namespace_cannot_escape_its_key_prefix(api: Api, target: str) -> None:
    answer = await api("GET", target)
    assert answer.status == 400
    assert answer.json["message"].startswith('invalid key: "/configmaps/..')
