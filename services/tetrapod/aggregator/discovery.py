"""Merged discovery: the groups of all APIServices with their resources.

Local services are queried in memory (`DiscoverySource`). External API servers are queried by their aggregated discovery
documents, which are cached. The versions of a server that does not return its document are listed as stale, without
resources.

Upstream: kube-aggregator/pkg/apiserver/handler_discovery.go (DiscoveryManager) and handler_apis.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tetrapod.aggregator.apiservice import GROUP, group_version, is_available, service_of
from tetrapod.aggregator.backends import Backends
from tetrapod.aggregator.external_documents import read_aggregated, read_classic
from tetrapod.aggregator.priorities import CUSTOM, priorities
from tetrapod.aggregator.routing import Records
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.generic.discovery import documents
from tetrapod.generic.discovery.handlers import DiscoverySource
from tetrapod.generic.discovery.negotiation import is_aggregated
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.proxy import BackendError
from tetrapod.generic.proxy.resolver import Unresolvable
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.version_order import priority_key

REFRESH: Final = 60.0
TIMEOUT: Final = 5.0
FIRST: Final = (20001, 0)
"""The priorities of the aggregator's own group. They are higher than those that an APIService may have."""
_ACCEPT: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class MergedDiscovery:
    """A `DiscoverySource` that merges the local sources and the external APIServices.

    Args:
        records: all APIServices, which determine the groups and their order.
        local: the discovery sources of local services, beginning with the aggregator's own.
        backends: connections to the external servers, whose discovery documents are fetched.
    """

    def __init__(self, records: Records, local: Sequence[DiscoverySource], backends: Backends) -> None:
        self._records = records
        self._local = local
        self._external = ExternalDiscovery(records, backends)
        self._index: tuple[int, Mapping[GroupVersion, Object]] = (-1, {})

    def start(self, lifecycle: Lifecycle) -> None:
        """Start the background task that refreshes the documents of external servers."""
        self._external.start(lifecycle)

    @property
    def generation(self) -> int:
        return self._records.generation + self._external.generation + sum(source.generation for source in self._local)

    def core_versions(self) -> list[str]:
        return list(dict.fromkeys(version for source in self._local for version in source.core_versions()))

    def groups(self) -> list[Object]:
        """Return the APIGroups for /apis: first the aggregator's own, which has no APIService, then all others."""
        own = [group for source in self._local for group in source.groups() if group["name"] == GROUP]
        return own + [
            documents.api_group(group, [group_version(obj).version for obj in members])
            for group, members in self._records.groups
            if group and group != GROUP
        ]

    def resources(self, group: str, version: str) -> Object | None:
        return next(
            (resources for source in self._local if (resources := source.resources(group, version)) is not None), None
        )

    def aggregated(self, core: bool) -> list[Object]:
        """Return the items of the aggregated discovery document.

        The versions of local services have built-in priorities, not those of their APIServices. Versions of external
        servers replace local ones.

        Args:
            core: True for the document of `/api`, False for `/apis`.
        """
        if core:
            return [item for source in self._local for item in source.aggregated(True)]
        ranked_versions = {gv: _Ranked(item, *_own_priorities(gv)) for gv, item in self._local_versions().items()}
        for (group, version), obj in self._records.external.items():
            if group:
                spec = obj["spec"]
                ranks = spec.get("groupPriorityMinimum", 0), spec.get("versionPriority", 0)
                ranked_versions[GroupVersion(group, version)] = _Ranked(self._external.version(obj), *ranks)
        groups: dict[str, list[_Ranked]] = {}
        for gv, ranked in ranked_versions.items():
            groups.setdefault(gv.group, []).append(ranked)
        return [
            documents.aggregated_group(group, [ranked.document for ranked in sorted(members, key=_preferred)])
            for group, members in sorted(
                groups.items(), key=lambda item: (-max(ranked.group for ranked in item[1]), item[0])
            )
        ]

    def _local_versions(self) -> Mapping[GroupVersion, Object]:
        """Return the APIVersionDiscovery objects of all local sources by group-version.

        If several sources have a group-version, that of the first one counts: a CustomResourceDefinition does not
        replace a built-in group-version. The objects are cached until a source changes.
        """
        generation = sum(source.generation for source in self._local)
        if self._index[0] != generation:
            versions: dict[GroupVersion, Object] = {}
            for source in reversed(self._local):
                versions.update(index_of(source.aggregated(False)))
            self._index = (generation, versions)
        return self._index[1]


class _Ranked(NamedTuple):
    """An APIVersionDiscovery object with the priorities by which groups and versions are sorted.

    Attributes:
        document: the object.
        group: the groupPriorityMinimum of its group.
        version: the versionPriority of its version.
    """

    document: Object
    group: int
    version: int


def _own_priorities(gv: GroupVersion) -> tuple[int, int]:
    return FIRST if gv.group == GROUP else priorities(gv) or CUSTOM


def _preferred(ranked: _Ranked) -> tuple[int, Any]:
    return -ranked.version, priority_key(ranked.document["version"])


def index_of(items: Sequence[Object]) -> dict[GroupVersion, Object]:
    """Return the APIVersionDiscovery objects by group-version.

    Args:
        items: the APIGroupDiscovery objects of an aggregated discovery document.
    """
    return {
        GroupVersion(item["metadata"].get("name", ""), version["version"]): version
        for item in items
        for version in item["versions"]
    }


class NotDiscovered(Exception):
    """The error for a server that did not return its discovery document. The work queue retries soon."""


class ExternalDiscovery:
    """The cached discovery documents of external API servers, for the group-versions that they are registered for.

    Attributes:
        generation: grows with each change of a document.

    Args:
        records: all APIServices.
        backends: connections to the external servers.
    """

    def __init__(self, records: Records, backends: Backends) -> None:
        self.generation = 0
        self._records = records
        self._backends = backends
        self._cached: dict[str, _CachedVersion] = {}  # by the name of the APIService, the last document of its server
        self._seen: dict[str, tuple[object, bool]] = {}
        self._queue: WorkQueue[str] = WorkQueue("apiservice-discovery", self._refresh)
        records.on_change(self._changed)

    def start(self, lifecycle: Lifecycle) -> None:
        """Start the background workers that fetch documents."""
        lifecycle.background("apiservice-discovery", self._queue.run(4))

    def version(self, obj: Object) -> Object:
        """Return the APIVersionDiscovery object for the group-version of an APIService.

        It has no resources and the freshness Stale if it was not fetched yet or the last attempt failed. As upstream,
        the condition Available of the APIService is not considered.
        """
        cached = self._cached.get(obj["metadata"]["name"])
        return cached.document if cached is not None else _stale(group_version(obj))

    def _changed(self) -> None:
        """Handle a change of the APIServices.

        Queue those whose discovery document must be fetched, because their spec changed or their server became
        available or unavailable. Drop the documents of deleted ones.
        """
        seen: dict[str, tuple[object, bool]] = {}
        for obj in self._records.external.values():
            name = obj["metadata"]["name"]
            seen[name] = (obj["spec"], is_available(obj))
            if self._seen.get(name) != seen[name]:
                self._queue.add(name)
        for name in self._cached.keys() - seen.keys():
            del self._cached[name]
        self._seen = seen

    async def _refresh(self, name: str) -> None:
        obj = self._records.get(name)
        if obj is None or service_of(obj) is None:
            return
        cached = self._cached.get(name)
        try:
            async with asyncio.timeout(TIMEOUT):
                self._keep(name, await self._fetch(obj, cached.etag if cached is not None else ""))
        except (BackendError, Unresolvable, TimeoutError, ValueError) as error:
            self._keep(name, _CachedVersion("", _stale(group_version(obj))))
            raise NotDiscovered(f"{type(error).__name__}: {error}") from error
        self._queue.add_after(name, REFRESH)

    def _keep(self, name: str, fetched: _CachedVersion | None) -> None:
        if fetched is None:  # not modified
            return
        cached = self._cached.get(name)
        self._cached[name] = fetched
        if cached is None or fetched.document != cached.document:
            self.generation += 1

    async def _fetch(self, obj: Object, etag: str) -> _CachedVersion | None:
        """Fetch the APIVersionDiscovery object for the group-version of an APIService; None if it was not modified.

        If a server's document lacks the group-version for which the server is registered, the result has no resources
        and the freshness Current.

        Args:
            etag: the ETag of the cached document; "" for none.

        Raises:
            BackendError, Unresolvable, ValueError: the document cannot be fetched or is malformed.
        """
        gv = group_version(obj)
        answer = await self._backends.fetch(obj, "/apis" if gv.group else "/api", _ACCEPT, etag)
        if answer.status == 304:
            return None
        if answer.status == 503:
            raise ValueError("status 503 of /apis")
        if answer.status == 200 and is_aggregated(answer.media_type):
            version_document = read_aggregated(answer.body).get(gv, {"version": gv.version})
            return _CachedVersion(answer.etag, {**version_document, "freshness": "Current"})
        return _CachedVersion("", {**await self._classic(obj, gv), "freshness": "Current"})

    async def _classic(self, obj: Object, gv: GroupVersion) -> Object:
        """Fetch the APIResourceList of a server without aggregated discovery, and convert it to APIVersionDiscovery.

        Raises:
            BackendError, Unresolvable, ValueError: the list cannot be fetched or is malformed.
        """
        path = f"/apis/{gv.group}/{gv.version}" if gv.group else f"/api/{gv.version}"
        answer = await self._backends.fetch(obj, path, "application/json")
        if answer.status != 200:
            raise ValueError(f"status {answer.status} of {path}")
        return read_classic(gv, answer.body)


class _CachedVersion(NamedTuple):
    """The cached discovery document of one group-version of an external server, and its ETag ("" if it has none)."""

    etag: str
    document: Object


def _stale(gv: GroupVersion) -> Object:
    return {"version": gv.version, "freshness": "Stale"}
