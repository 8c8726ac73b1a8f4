"""The stores of --etcd-servers-overrides, which hold single resources or whole groups.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/etcd.go, ParseEtcdServersOverrides, addEtcdHealthEndpoint
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from tetrapod.generic.lifecycle import Check
from tetrapod.generic.storage.backend import Backend
from tetrapod.machinery.gvk import GroupResource

_INVALID: Final = (
    "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon "
    "separated"
)
_SERVER_LEASES: Final = GroupResource("", "apiServerIPInfo")
"""Upstream's name of the leases of API servers in the store."""


class Override(NamedTuple):
    """One setting of --etcd-servers-overrides: the etcd in which one resource is stored.

    Attributes:
        resource: the resource. If its name is `*`, the setting applies to all resources of the group that have no
            setting of their own.
        servers: the URLs of the etcd members.
    """

    resource: GroupResource
    servers: tuple[str, ...]


def parse_overrides(settings: Sequence[str]) -> list[Override]:
    """Return the settings of --etcd-servers-overrides.

    Raises:
        ValueError: one is invalid; the text is upstream's.
    """
    overrides = []
    for setting in settings:
        name, *servers = setting.split("#")
        group, *resource = name.split("/")
        if len(servers) != 1 or len(resource) != 1:
            raise ValueError(_INVALID)
        urls = tuple(servers[0].split(";"))
        if not all(urls):
            raise ValueError(_INVALID)
        overrides.append(Override(GroupResource(group, resource[0]), urls))
    return overrides


class StorageOverrides:
    """The additional stores of a server. Settings that name the same servers share a store.

    Args:
        overrides: the settings of --etcd-servers-overrides; a later one for the same resource replaces an earlier one.
        connect: returns a new backend for the URLs of an etcd, without contacting it.

    Attributes:
        stores: the stores, in the order in which --etcd-servers-overrides names them.
        by_resource: the store of each resource that has one of its own.
    """

    def __init__(self, overrides: Sequence[Override], connect: Callable[[Sequence[str]], Backend]) -> None:
        by_servers: dict[tuple[str, ...], Backend] = {}
        by_resource: dict[GroupResource, Backend] = {}
        for resource, servers in overrides:
            key = tuple(sorted(servers))
            if key not in by_servers:
                by_servers[key] = connect(servers)
            by_resource[resource] = by_servers[key]
        self.stores: Sequence[Backend] = list(by_servers.values())
        self.by_resource: Mapping[GroupResource, Backend] = by_resource

    def server_leases(self, default: Backend) -> Backend:
        """Return the store of the leases of API servers; `default` if --etcd-servers-overrides names none."""
        return self.by_resource.get(_SERVER_LEASES, default)

    def component_probes(self) -> dict[str, Check]:
        """Return the probes of componentstatuses by the component's name: "etcd-1", "etcd-2" and so on.

        As upstream, there is one for each resource that has a setting, even if several share a store.
        """
        return {f"etcd-{number}": probe_of(store) for number, store in enumerate(self.by_resource.values(), start=1)}

    async def close(self) -> None:
        """Close all stores."""
        await asyncio.gather(*(store.close() for store in self.stores))


def probe_of(store: Backend) -> Check:
    """Return a check that sends a request to the store, and raises its error."""

    async def probe() -> None:
        await store.revision()

    return probe
