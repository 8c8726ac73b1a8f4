"""Field and label selectors of custom resources apply to the version of the request, independent of the stored
version.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from integration.extensions.cluster import MERGE, Cluster, Watching, definition, running
from support.definitions import version
from support.webhook import WebhookServer, webhook_server

V1, V2 = (f"/apis/example.com/{v}/namespaces/ns/widgets" for v in ("v1", "v2"))


@pytest.fixture
def hook() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        server.on("/convert", convert)
        yield server


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with running() as found:
        yield found


def convert(review: Any) -> Any:
    """v1 has `hostPort`, v2 `host` and `port`. The label `zone` is called `area` in v1."""
    wanted = review["request"]["desiredAPIVersion"]
    made = []
    for given in review["request"]["objects"]:
        obj = copy.deepcopy(given)
        obj["apiVersion"] = wanted
        labels = obj["metadata"].get("labels") or {}
        old, new = ("zone", "area") if wanted.endswith("/v1") else ("area", "zone")
        if old in labels:
            labels[new] = labels.pop(old)
        if wanted.endswith("/v1"):
            obj["hostPort"] = f"{obj.pop('host', '')}:{obj.pop('port', '')}"
        else:
            obj["host"], _, obj["port"] = obj.pop("hostPort", "").partition(":")
        made.append(obj)
    response = {"uid": review["request"]["uid"], "convertedObjects": made, "result": {"status": "Success"}}
    return {"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response}


def having(*fields: str) -> Any:
    return {"type": "object", "properties": {name: {"type": "string"} for name in fields}}


def selectable(*fields: str) -> list[Any]:
    return [{"jsonPath": f".{name}"} for name in fields]


async def define(cluster: Cluster, hook: WebhookServer | None) -> None:
    """v1 is stored. Without a webhook both versions have all fields, and v2 has a default of its own."""
    if hook is not None:
        schemas = having("hostPort"), having("host", "port")
    else:
        schemas = having("hostPort", "host"), having("hostPort", "host", "port")
    crd = definition(
        "Widget",
        version("v1", schema=schemas[0], selectableFields=selectable("hostPort")),
        version("v2", storage=False, schema=schemas[1], selectableFields=selectable("host", "port")),
    )
    if hook is not None:
        declared = {"clientConfig": hook.config("/convert"), "conversionReviewVersions": ["v1"]}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": declared}
    await cluster.define(crd)


def widget(name: str, host: str, port: str = "80", **labels: str) -> Any:
    metadata = {"name": name, "labels": labels} if labels else {"name": name}
    return {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": metadata, "host": host, "port": port}


async def listed(cluster: Cluster, target: str, query: str) -> list[str]:
    answer = await cluster.get(f"{target}?{query}")
    assert answer.status == 200, answer.body
    return [item["metadata"]["name"] for item in answer.json["items"]]


async def happened(watching: Watching, count: int) -> list[tuple[str, str]]:
    events = [await watching.event() for _ in range(count)]
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


async def test_a_list_selects_by_fields_of_the_requested_version(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    for name, host, port in (("a", "host1", "80"), ("b", "host1", "8080"), ("c", "host2", "80")):
        await cluster.create(V2, widget(name, host, port))
    assert await listed(cluster, V2, "fieldSelector=host%3Dhost1") == ["a", "b"]
    assert await listed(cluster, V2, "fieldSelector=host%3Dhost1,port%3D80") == ["a"]
    assert await listed(cluster, V2, "fieldSelector=host%21%3Dhost1") == ["c"]
    assert await listed(cluster, V1, "fieldSelector=hostPort%3Dhost1:80") == ["a"]
    assert await listed(cluster, "/apis/example.com/v2/widgets", "fieldSelector=port%3D80") == ["a", "c"]
    rejected = await cluster.get(f"{V1}?fieldSelector=host%3Dhost1")
    assert (rejected.status, rejected.json["message"]) == (400, "field label not supported: host")


async def test_a_list_selects_by_labels_of_the_requested_version(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    await cluster.create(V2, widget("a", "host1", zone="x"))
    await cluster.create(V2, widget("b", "host1", zone="y"))
    assert await listed(cluster, V2, "labelSelector=zone%3Dx") == ["a"]
    assert await listed(cluster, V1, "labelSelector=area%3Dx") == ["a"]
    assert await listed(cluster, V1, "labelSelector=zone%3Dx") == []


async def test_pages_of_a_selection_have_every_match_once(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    for number in range(12):
        await cluster.create(V2, widget(f"w{number:02}", f"host{number % 3}"))
    found: list[str] = []
    token, pages = "", 0
    while token or not pages:
        page = (await cluster.get(f"{V2}?fieldSelector=host%3Dhost1&limit=2&continue={token}")).json
        found += [item["metadata"]["name"] for item in page["items"]]
        token, pages = page["metadata"].get("continue", ""), pages + 1
        assert len(page["items"]) <= 2
    assert found == ["w01", "w04", "w07", "w10"]


async def test_lists_larger_than_the_conversion_cache_are_complete(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    names = [f"w{number}" for number in range(8)]
    for name in names:
        await cluster.create(V2, widget(name, "h" * 1_000_000))
    async with cluster.watch(f"{V2}?watch=1&resourceVersion=0") as watching:
        assert await happened(watching, 8) == [("ADDED", name) for name in names]


@pytest.mark.parametrize("resumed", [False, True], ids=["from now", "from a version"])
async def test_a_watch_selects_by_the_requested_version(cluster: Cluster, hook: WebhookServer, resumed: bool) -> None:
    await define(cluster, hook)
    first = await cluster.create(V2, widget("a", "host1"))
    await cluster.create(V2, widget("b", "host2"))

    async def change() -> Any:
        await cluster.call("PATCH", f"{V2}/b", {"host": "host1"}, content_type=MERGE)
        await cluster.call("PATCH", f"{V2}/b", {"port": "81"}, content_type=MERGE)
        left = await cluster.call("PATCH", f"{V2}/b", {"host": "host3"}, content_type=MERGE)
        await cluster.call("DELETE", f"{V2}/b")
        await cluster.call("DELETE", f"{V2}/a")
        return left.json

    if resumed:
        left = await change()
    since = f"&resourceVersion={first['metadata']['resourceVersion']}" if resumed else ""
    async with cluster.watch(f"{V2}?watch=1&fieldSelector=host%3Dhost1{since}") as watching:
        if not resumed:
            assert await happened(watching, 1) == [("ADDED", "a")]
            left = await change()
        assert await happened(watching, 2) == [("ADDED", "b"), ("MODIFIED", "b")]
        gone = await watching.event()
        assert (gone["type"], gone["object"]["host"], gone["object"]["apiVersion"]) == (
            "DELETED",
            "host1",
            "example.com/v2",
        )
        assert gone["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
        assert await happened(watching, 1) == [("DELETED", "a")]


async def test_deletecollection_selects_by_the_requested_version(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    for name, host in (("a", "host1"), ("b", "host2"), ("c", "host1")):
        await cluster.create(V2, widget(name, host))
    assert (await cluster.call("DELETE", f"{V2}?fieldSelector=host%3Dhost1")).status == 200
    assert await listed(cluster, V2, "") == ["b"]


async def test_versions_without_a_webhook_select_by_stored_fields(cluster: Cluster) -> None:
    await define(cluster, None)
    await cluster.create(V2, widget("a", "host1"))
    await cluster.create(V2, widget("b", "host2"))
    assert await listed(cluster, V2, "fieldSelector=host%3Dhost1") == ["a"]
    assert await listed(cluster, V2, "fieldSelector=port%3D80") == []  # v1 has no such field
    async with cluster.watch(f"{V2}?watch=1&fieldSelector=host%3Dhost1") as watching:
        assert await happened(watching, 1) == [("ADDED", "a")]
        await cluster.call("PATCH", f"{V2}/b", {"host": "host1"}, content_type=MERGE)
        assert await happened(watching, 1) == [("ADDED", "b")]


async def test_a_field_is_selected_by_a_default_added_later(cluster: Cluster) -> None:
    crd = definition("Widget", version("v1", schema=having("color"), selectableFields=selectable("color")))
    await cluster.define(crd)
    await cluster.create(V1, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
    colored = having("color")
    colored["properties"]["color"]["default"] = "red"
    place = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
    changed = version("v1", schema=colored, selectableFields=selectable("color"))
    assert (await cluster.call("PATCH", place, {"spec": {"versions": [changed]}}, content_type=MERGE)).status == 200
    await cluster.until(f"{V1}/a", lambda found: found.get("color") == "red")
    assert await listed(cluster, V1, "fieldSelector=color%3Dred") == ["a"]
    assert await listed(cluster, V1, "fieldSelector=color%21%3Dred") == []
    async with cluster.watch(f"{V1}?watch=1&fieldSelector=color%3Dred") as watching:
        assert await happened(watching, 1) == [("ADDED", "a")]


async def test_an_event_is_converted_once_for_all_watches(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    target = f"{V2}?watch=1&resourceVersion=0&fieldSelector=host%3Dhost1"
    async with cluster.watch(target) as one, cluster.watch(target) as other, cluster.watch(target) as third:
        stored = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "hostPort": "host1:80"}
        await cluster.create(V1, stored)
        for watching in (one, other, third):
            assert await happened(watching, 1) == [("ADDED", "a")]
    assert [len(review["request"]["objects"]) for _, _, review in hook.seen] == [1]
