"""Tests of merged discovery: which groups it lists in which format, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tetrapod.aggregator.backends import Backends, ProxyCertificate
from tetrapod.aggregator.discovery import MergedDiscovery
from tetrapod.aggregator.routing import Records
from tetrapod.generic.proxy import BackendPool
from tetrapod.generic.proxy.resolver import Resolver
from unit.aggregator.objects import FakeCluster, api_service


class Local:
    """Serves one version of each group."""

    generation = 1

    def __init__(self, **groups: str) -> None:
        self._groups = groups

    def core_versions(self) -> list[str]:
        return ["v1"]

    def groups(self) -> list[Any]:
        return [{"name": group} for group in self._groups]

    def resources(self, group: str, version: str) -> None:
        return None

    def aggregated(self, core: bool) -> list[Any]:
        versions = self._groups.items()
        return [
            {"metadata": {"name": group}, "versions": [{"version": v, "freshness": "Current"}]} for group, v in versions
        ]


def merged(local: Local, *objects: Any, also: Sequence[Local] = ()) -> MergedDiscovery:
    records = Records()
    for obj in objects:
        records.changed(None, obj)
    return MergedDiscovery(
        records,
        [local, *also],
        Backends(BackendPool(), Resolver(FakeCluster(), by_endpoints=False), ProxyCertificate()),
    )


def names(items: list[Any]) -> list[tuple[str, list[str]]]:
    return [(item["metadata"]["name"], [version["version"] for version in item["versions"]]) for item in items]


LOCAL = Local(**{"b": "v1", "a": "v1beta1", "apps": "v1", "apiregistration.k8s.io": "v1"})


async def test_aggregated_discovery_lists_served_groups_regardless_of_apiservices() -> None:
    found = merged(LOCAL, api_service("nobody", priority=20000), api_service("b", priority=1))
    assert names(found.aggregated(False)) == [
        ("apiregistration.k8s.io", ["v1"]),
        ("apps", ["v1"]),
        ("a", ["v1beta1"]),
        ("b", ["v1"]),
    ]
    assert [group["name"] for group in found.groups()] == ["apiregistration.k8s.io", "nobody", "b"]


async def test_external_servers_are_ordered_by_priority_and_before_local_groups() -> None:
    services = [
        api_service("first", priority=20000, service={}),
        api_service("a", "v3", order=900, priority=10, service={}),
        api_service("b", service={}),
    ]
    items = merged(LOCAL, *services).aggregated(False)
    assert names(items) == [
        ("apiregistration.k8s.io", ["v1"]),
        ("first", ["v1"]),
        ("apps", ["v1"]),
        ("a", ["v3", "v1beta1"]),
        ("b", ["v1"]),
    ]
    assert items[1]["versions"] == items[-1]["versions"] == [{"version": "v1", "freshness": "Stale"}]


async def test_custom_resources_do_not_replace_a_builtin_group_version() -> None:
    class Custom(Local):
        def aggregated(self, core: bool) -> list[Any]:
            versions = [{"version": v, "resources": [{"resource": "bars"}]} for v in ("v1", "vfake")]
            return [{"metadata": {"name": "apps"}, "versions": versions}]

    found = merged(LOCAL, also=[Custom()]).aggregated(False)
    [apps] = [item for item in found if item["metadata"]["name"] == "apps"]
    resources = {version["version"]: version.get("resources", []) for version in apps["versions"]}
    assert resources == {"v1": [], "vfake": [{"resource": "bars"}]}
