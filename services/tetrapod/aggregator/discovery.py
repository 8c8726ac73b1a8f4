"""Discovery of everything: the groups of all APIServices, with what each serving side says of its resources.

Local sides are asked directly (`DiscoverySource`), external ones by their own aggregated documents, kept until they change. What an
unavailable side serves is not known: its versions are there, and stale. Upstream: kube-aggregator/pkg/apiserver/handler_discovery.go
(the DiscoveryManager), handler_apis.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from tetrapod.aggregator.apiservice import GROUP, group_version, is_available, service_of
from tetrapod.aggregator.backends import Backends
from tetrapod.aggregator.discovery_fallback import from_resource_list
from tetrapod.aggregator.routing import Records
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.generic.discovery import documents
from tetrapod.generic.discovery.handlers import DiscoverySource
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.proxy import BackendError
from tetrapod.generic.proxy.resolver import Unresolvable
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

REFRESH: Final = 60.0
PATIENCE: Final = 5.0
_ACCEPT: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


class MergedDiscovery:
    """A `DiscoverySource` over local sources and external APIServices."""

    def __init__(self, records: Records, local: Sequence[DiscoverySource], backends: Backends) -> None:
        self._records = records
        self._local = local
        self._external = ExternalDiscovery(records, backends)
        self._index: tuple[int, Mapping[tuple[str, str], Object]] = (-1, {})

    def start(self, lifecycle: Lifecycle) -> None:
        self._external.start(lifecycle)

    @property
    def generation(self) -> int:
        return self._records.generation + self._external.generation + sum(source.generation for source in self._local)

    def core_versions(self) -> list[str]:
        return list(dict.fromkeys(version for source in self._local for version in source.core_versions()))

    def groups(self) -> list[Object]:
        """The aggregator's own group, which has no APIService, then the others."""
        own = [group for source in self._local for group in source.groups() if group["name"] == GROUP]
        return own + [
            documents.api_group(group, [group_version(obj).version for obj in members], typed=False)
            for group, members in self._records.groups
            if group and group != GROUP
        ]

    def resources(self, group: str, version: str) -> Object | None:
        return next((found for source in self._local if (found := source.resources(group, version)) is not None), None)

    def aggregated(self, core: bool) -> list[Object]:
        if core:
            return [item for source in self._local for item in source.aggregated(True)]
        local = self._local_versions()
        own = [documents.aggregated_group(GROUP, [item]) for (group, _), item in local.items() if group == GROUP]
        return own + [
            documents.aggregated_group(group, [self._version(obj, local) for obj in members])
            for group, members in self._records.groups
            if group and group != GROUP
        ]

    def _version(self, obj: Object, local: Mapping[tuple[str, str], Object]) -> Object:
        gv = group_version(obj)
        if service_of(obj) is None:
            found = local.get((gv.group, gv.version))
        else:
            found = self._external.version(obj) if is_available(obj) else None
        return found or {"version": gv.version, "freshness": "Stale"}

    def _local_versions(self) -> Mapping[tuple[str, str], Object]:
        generation = sum(source.generation for source in self._local)
        if self._index[0] != generation:
            found: dict[tuple[str, str], Object] = {}
            for source in self._local:
                found.update(index_of(source.aggregated(False)))
            self._index = (generation, found)
        return self._index[1]


def index_of(items: Sequence[Object]) -> dict[tuple[str, str], Object]:
    return {(item["metadata"].get("name", ""), version["version"]): version for item in items for version in item["versions"]}


class ExternalDiscovery:
    """What external API servers say of the group-versions that they are registered for."""

    def __init__(self, records: Records, backends: Backends) -> None:
        self.generation = 0
        self._records = records
        self._backends = backends
        self._known: dict[str, tuple[str, Object]] = {}  # name of the APIService → ETag, version document
        self._seen: dict[str, tuple[object, bool]] = {}
        self._queue: WorkQueue[str] = WorkQueue("apiservice-discovery", self._refresh)
        records.on_change(self._changed)

    def start(self, lifecycle: Lifecycle) -> None:
        lifecycle.background("apiservice-discovery", self._queue.run(4))

    def version(self, obj: Object) -> Object | None:
        known = self._known.get(obj["metadata"]["name"])
        return known[1] if known is not None else None

    def _changed(self) -> None:
        """Ask anew where the spec has changed, or a server has come back."""
        seen: dict[str, tuple[object, bool]] = {}
        for obj in self._records.external.values():
            name = obj["metadata"]["name"]
            seen[name] = (obj["spec"], is_available(obj))
            if self._seen.get(name) != seen[name]:
                self._queue.add(name)
        for name in self._known.keys() - seen.keys():
            del self._known[name]
        self._seen = seen

    async def _refresh(self, name: str) -> None:
        obj = self._records.get(name)
        if obj is None or service_of(obj) is None or not is_available(obj):
            return
        self._queue.add_after(name, REFRESH)
        etag, document = self._known.get(name, ("", None))
        try:
            async with asyncio.timeout(PATIENCE):
                fetched = await self._fetch(obj, etag)
        except (BackendError, Unresolvable, TimeoutError, ValueError, KeyError, TypeError) as error:
            log.info("discovery of %s failed: %s", name, error or type(error).__name__)
            return
        if fetched is None:
            return
        self._known[name] = fetched
        if fetched[1] != document:
            self.generation += 1

    async def _fetch(self, obj: Object, etag: str) -> tuple[str, Object] | None:
        """ETag and document; None where nothing has changed."""
        gv = group_version(obj)
        status, new_etag, body = await self._backends.fetch(obj, "/apis" if gv.group else "/api", _ACCEPT, etag)
        if status == 304:
            return None
        if status == 200:
            found = orjson.loads(body)
            if found.get("kind") == "APIGroupDiscoveryList":
                version = index_of(found["items"]).get((gv.group, gv.version))
                if version is None:
                    raise ValueError("it does not serve what it is registered for")
                return new_etag, {**version, "freshness": "Current"}
        return "", await self._from_list(obj)

    async def _from_list(self, obj: Object) -> Object:
        """A server that knows only the classic form."""
        gv = group_version(obj)
        path = f"/apis/{gv.group}/{gv.version}" if gv.group else f"/api/{gv.version}"
        status, _, body = await self._backends.fetch(obj, path, "application/json")
        if status != 200:
            raise ValueError(f"status {status} of {path}")
        return from_resource_list(gv, orjson.loads(body))
