from __future__ import annotations

from typing import Any

from tetrapod.aggregator.peerproxy.merging import merge_groups


def group(name: str, **versions: list[dict[str, Any]]) -> dict[str, Any]:
    items = [
        {"version": version, "resources": resources, "freshness": "Current"} for version, resources in versions.items()
    ]
    return {"metadata": {"name": name}, "versions": items}


def resource(name: str, *verbs: str) -> dict[str, Any]:
    return {"resource": name, "verbs": list(verbs)}


def names(groups: list[dict[str, Any]]) -> list[str]:
    return [item["metadata"]["name"] for item in groups]


def test_the_local_list_is_returned_without_peers() -> None:
    local = [group("b"), group("a")]
    assert merge_groups("x", local, {}) is local


def test_groups_keep_the_order_of_each_server() -> None:
    assert names(merge_groups("x", [group("b"), group("a")], {"y": [group("c"), group("a")]})) == ["b", "c", "a"]


def test_contradicting_orders_are_sorted() -> None:
    merged = merge_groups("x", [group("b"), group("a"), group("d")], {"y": [group("a"), group("b"), group("c")]})
    assert names(merged) == ["a", "b", "c", "d"]


def test_versions_resources_and_verbs_are_united() -> None:
    local = [group("g", v1=[resource("r", "list", "get")])]
    peer = [group("g", v1=[resource("r", "watch"), resource("s", "get")], v1beta1=[resource("r", "get")])]
    [merged] = merge_groups("x", local, {"y": peer})
    assert [version["version"] for version in merged["versions"]] == ["v1", "v1beta1"]
    assert merged["versions"][0]["resources"] == [resource("r", "get", "list", "watch"), resource("s", "get")]
    assert local[0]["versions"][0]["resources"] == [resource("r", "list", "get")]
