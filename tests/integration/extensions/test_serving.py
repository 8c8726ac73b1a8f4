"""A new definition is served at once."""

from __future__ import annotations

from integration.extensions.cluster import CRDS, Cluster, definition

WIDGETS = "/apis/example.com/v1/namespaces/ns/widgets"
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}


async def test_a_new_definition_is_served_without_restart(cluster: Cluster) -> None:
    crd = await cluster.define(definition())
    assert crd["status"]["acceptedNames"] == {
        "kind": "Widget",
        "listKind": "WidgetList",
        "plural": "widgets",
        "singular": "widget",
    }
    created = await cluster.create(WIDGETS, WIDGET)
    assert created["metadata"]["generation"] == 1
    assert (await cluster.get(f"{WIDGETS}/w")).json == created
    listed = (await cluster.get("/apis/example.com/v1/widgets")).json
    assert (listed["kind"], listed["items"]) == ("WidgetList", [created])


async def test_watches_deliver_events_of_custom_resources(cluster: Cluster) -> None:
    await cluster.define(definition())
    async with cluster.watch(f"{WIDGETS}?watch=1") as watching:
        await cluster.create(WIDGETS, WIDGET)
        event = await watching.event()
        assert (event["type"], event["object"]["spec"]) == ("ADDED", {"size": 1})
        assert (await cluster.call("DELETE", f"{WIDGETS}/w")).status == 200
        assert (await watching.event())["type"] == "DELETED"


async def test_deleting_a_definition_deletes_its_objects(cluster: Cluster) -> None:
    await cluster.define(definition())
    await cluster.create(WIDGETS, WIDGET)
    assert (await cluster.call("DELETE", f"{CRDS}/widgets.example.com")).status == 200
    await cluster.until(f"{CRDS}/widgets.example.com", lambda crd: crd.get("code") == 404)
    assert (await cluster.get(f"{WIDGETS}/w")).body == b"404 page not found\n"
    await cluster.define(definition())
    assert (await cluster.get(WIDGETS)).json["items"] == []
