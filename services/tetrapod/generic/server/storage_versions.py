"""`StorageVersions`: reports in which version this server stores each resource, before it accepts writes of it.

Each resource has a StorageVersion object with an entry for each server. So a migrator knows when all servers store a
resource in the same version.
Upstream: k8s.io/apiserver/pkg/storageversion
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import get_or_none
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.discovery.source import DefinitionSource
from tetrapod.generic.lifecycle import Lifecycle, Unavailable
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.server.kubernetes_service.identity import LEASES, NAMESPACE
from tetrapod.machinery.conditions import find_condition, set_condition
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.gvk import GroupResource, GroupVersion, GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339

log = logging.getLogger(__name__)

GATE: Final = "StorageVersionAPI"
STORAGE_VERSIONS: Final = GroupVersionResource("internal.apiserver.k8s.io", "v1alpha1", "storageversions")
HOOK: Final = "built-in-resources-storage-version-updater"
_PERIOD: Final = 600.0
"""Seconds between two updates of all StorageVersions, which repair what other clients have changed."""
_LEASE_SECONDS: Final = 0.1
_RETRIES: Final = 3
_RETRY_SECONDS: Final = 1.0
_NO_ERROR: Final = "<nil>"


def enabled() -> bool:
    """Return whether the feature gates of StorageVersions are enabled."""
    return feature_gates.enabled(GATE) and feature_gates.enabled("APIServerIdentity")


class _Resource(NamedTuple):
    """A stored resource.

    Attributes:
        name: the name of its StorageVersion.
        resources: the resource, and those of other groups with the same objects.
        encoding: the version in which it is stored.
        decodable: the versions that can be read.
        served: the versions that are served.
    """

    name: str
    resources: Sequence[GroupResource]
    encoding: str
    decodable: Sequence[str]
    served: Sequence[str]

    def report(self, server: str) -> Object:
        """Return the entry of a server in the StorageVersion."""
        return {
            "apiServerID": server,
            "encodingVersion": self.encoding,
            "decodableVersions": [*self.decodable],
            "servedVersions": [*self.served],
        }


class StorageVersions:
    """The stored resources of this process, and the state of their StorageVersions.

    Args:
        sources: the resources of the services in this process.
        client: reads and writes StorageVersions.
        server: the ID of this server, which is the name of its identity Lease.

    Attributes:
        completed: whether all StorageVersions have been updated once, so that no writes are rejected any more.
    """

    def __init__(self, sources: Sequence[DefinitionSource], client: Client, server: str) -> None:
        self.completed = False
        self._client, self._server = client, server
        self._resources = _stored(definition for source in sources for definition in _definitions(source))
        self._pending = {resource: _NO_ERROR for stored in self._resources for resource in stored.resources}
        """The resources whose StorageVersions are not updated yet, with the text of the last error."""

    def pending(self, resource: GroupResource) -> str | None:
        """Return the last error of a resource whose StorageVersion is not updated yet; None if it is updated."""
        return self._pending.get(resource)

    def follow(self, lifecycle: Lifecycle) -> None:
        """Register the post-start hook that updates the StorageVersions, and repeats that every ten minutes."""

        async def start() -> None:
            first = asyncio.Event()
            lifecycle.background("storage versions", self.run(first))
            await first.wait()

        lifecycle.on_start(HOOK, start)

    async def run(self, completed: asyncio.Event | None = None) -> None:
        """Update the StorageVersions as soon as this server has an identity Lease, and then every ten minutes.

        Without the Lease, the entries of this server would be removed as those of a former one.

        Args:
            completed: is set once all have been updated.
        """
        while True:
            if await self._has_lease():
                break
            await asyncio.sleep(_LEASE_SECONDS)
        while True:
            await self._update_all()
            if self.completed and completed is not None:
                completed.set()
            await asyncio.sleep(_PERIOD if self.completed else _RETRY_SECONDS)

    async def _has_lease(self) -> bool:
        try:
            return await get_or_none(self._client, LEASES, NAMESPACE, self._server) is not None
        except (StatusError, Unavailable) as error:
            log.debug("the identity lease %s cannot be read: %s", self._server, error)
            return False

    async def _update_all(self) -> None:
        failed = False
        for stored in self._resources:
            try:
                await _update_repeatedly(self._client, stored.name, stored.report(self._server))
            except (StatusError, Unavailable) as error:
                log.error("failed to update storage version for %s: %s", stored.name, error)
                failed = True
                for resource in stored.resources:
                    if resource in self._pending:
                        self._pending[resource] = str(error)
                continue
            for resource in stored.resources:
                self._pending.pop(resource, None)
        self.completed = self.completed or not failed


def _definitions(source: DefinitionSource) -> Iterable[ResourceDefinition]:
    for group, version in source.group_versions():
        yield from source.definitions(group, version)


def _stored(definitions: Iterable[ResourceDefinition]) -> list[_Resource]:
    """Return the resources with storage. If several share their objects, only the first by name is included."""
    by_name = {definition.group_resource: definition for definition in definitions if definition.rest is None}
    seen: set[GroupResource] = set()
    resources = []
    for name in sorted(by_name):
        if name in seen:
            continue
        definition = by_name[name]
        same = [definition, *definition.equivalents()]
        seen.update(other.group_resource for other in same)
        resources.append(
            _Resource(
                name=f"{name.group or 'core'}.{name.resource}",
                resources=[other.group_resource for other in same],
                encoding=definition.stored_api_version,
                decodable=_decodable(definition, same),
                served=[str(GroupVersion(name.group, version)) for version in definition.served_versions],
            )
        )
    return resources


def _decodable(definition: ResourceDefinition, same: Sequence[ResourceDefinition]) -> list[str]:
    versions = [str(GroupVersion(other.group, version)) for other in same for version in other.versions]
    return list(dict.fromkeys([*versions, definition.stored_api_version]))


async def _update_repeatedly(client: Client, name: str, report: Object) -> None:
    """Update the StorageVersion of a resource. Conflicts are repeated, and other errors up to three times.

    Args:
        client: reads and writes the StorageVersion.
        name: its name.
        report: the entry of this server.

    Raises:
        StatusError, Unavailable: the last error.
    """
    failures = 0
    while True:
        try:
            return await _update(client, name, report)
        except StatusError as error:
            failures += error.code != 409
            if failures == _RETRIES:
                raise
        except Unavailable:
            failures += 1
            if failures == _RETRIES:
                raise
        await asyncio.sleep(_RETRY_SECONDS)


async def _update(client: Client, name: str, report: Object) -> None:
    stored = await get_or_none(client, STORAGE_VERSIONS, "", name)
    if stored is None:
        body = {
            "apiVersion": "internal.apiserver.k8s.io/v1alpha1",
            "kind": "StorageVersion",
            "metadata": {"name": name},
            "spec": {},
        }
        stored = await client.create(STORAGE_VERSIONS, "", body)
    updated = copy_object(stored)
    reports = (updated.setdefault("status", {})).setdefault("storageVersions", [])
    mine = [i for i, other in enumerate(reports) if other.get("apiServerID") == report["apiServerID"]]
    if mine:
        reports[mine[0]] = report
    else:
        reports.append(report)
    set_common_version(updated)
    if updated != stored:
        await client.update(STORAGE_VERSIONS, "", updated, subresource="status")


def set_common_version(storage_version: Object) -> None:
    """Set the common encoding version of a StorageVersion and its condition in place, by the reports of the servers.

    Upstream: SetCommonEncodingVersion
    """
    status = storage_version.setdefault("status", {})
    encodings = {report["encodingVersion"] for report in status.get("storageVersions") or ()}
    common = encodings.pop() if len(encodings) == 1 else None
    former = status.pop("commonEncodingVersion", None)
    if common is not None:
        status["commonEncodingVersion"] = common
    state = "Unset" if common is None else "Set"
    condition = {
        "type": "AllEncodingVersionsEqual",
        "status": "False" if common is None else "True",
        "observedGeneration": storage_version["metadata"].get("generation", 0),
        "reason": f"CommonEncodingVersion{state}",
        "message": f"Common encoding version {state.lower()}",
    }
    set_condition(storage_version, condition)
    if former is not None and common is not None and former != common:
        changed = find_condition(storage_version, condition["type"])
        assert changed is not None
        changed["lastTransitionTime"] = now_rfc3339()
