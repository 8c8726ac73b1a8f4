"""`Informer`: a local copy of a resource's objects, kept by list and watch, that tells its handlers what changes.

For controllers. Upstream: k8s.io/client-go/tools/cache (Reflector and SharedInformer). It recovers by itself: a watch that
ends is begun again where it stopped, one that is too old lists anew, and a server that is away is asked again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import weakref
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tetrapod.generic.client.interface import Client
from tetrapod.generic.metrics import GaugeFunction, Histogram
from tetrapod.generic.unavailable import Unavailable
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

_OF: Final = ("name", "group", "version", "resource")
_NAME: Final = "kube-apiserver"
_informers: Final[weakref.WeakSet[Informer]] = weakref.WeakSet()
_HANDLING: Final = Histogram(
    "informer_processing_latency_seconds",
    "Time taken to process events after popping from the queue.",
    _OF,
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)

_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 10.0
_LONGEST_FIRST_WAIT: Final = 0.5
"""Until the first list: services that start together wait for each other."""

OnChange = Callable[[Object | None, Object | None], None]
"""Called with (old, new): None and new for an addition, old and None for a deletion."""


class Informer:
    """Objects by (namespace, name). They are shared: nobody changes them."""

    def __init__(
        self,
        client: Client,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        keep: Callable[[Object], Object] | None = None,
        only: type[msgspec.Struct] | None = None,
        page: int = 0,
    ) -> None:
        """`keep` says what to remember of an object (client-go's TransformFunc); of metadata alone it is what controllers look at.

        `only` says that before any object is made: for large ones. They are listed by pages of so many, where `page` is given.
        """
        self.gvr = gvr
        self.objects: dict[tuple[str, str], Object] = {}
        self.synced = asyncio.Event()
        self.handlers: list[OnChange] = []
        self._client = client
        self._namespace = namespace
        self._query: dict[str, Any] = {"labelSelector": label_selector, "fieldSelector": field_selector}
        if metadata_only:
            self._query["metadata_only"] = True
            keep = keep or keep_metadata
        if only is not None:
            self._query["only"] = only
        self._page = page
        self._keep = keep or _everything
        self.version = ""
        """How far it has come."""
        _informers.add(self)
        self._handling = _HANDLING.row((_NAME, *gvr))
        self.gone = False  # the resource is not served (any more)

    def get(self, namespace: str, name: str) -> Object | None:
        return self.objects.get((namespace, name))

    async def run(self) -> None:
        """List and watch until cancelled."""
        wait = _FIRST_WAIT
        version = ""
        while True:
            try:
                if not version:
                    version = self.version = await self._list()
                    wait = _FIRST_WAIT
                version = await self._watch(version)
            except StatusError as error:
                self.gone = error.code in (404, 405)
                version = ""
                if error.code != 410:
                    log.debug("informer %s: %s", self.gvr, error)
                    await asyncio.sleep(wait * random.uniform(0.8, 1.2))
                    wait = min(wait * 2, _LONGEST_WAIT if self.synced.is_set() else _LONGEST_FIRST_WAIT)
            except (Unavailable, OSError) as error:
                log.debug("informer %s: %s", self.gvr, error)
                await asyncio.sleep(wait * random.uniform(0.8, 1.2))
                wait = min(wait * 2, _LONGEST_WAIT if self.synced.is_set() else _LONGEST_FIRST_WAIT)

    async def _list(self) -> str:
        fresh, version = await self._pages()
        old, self.objects = self.objects, fresh
        for key, item in fresh.items():
            before = old.get(key)
            if before is None or before["metadata"].get("resourceVersion") != item["metadata"].get("resourceVersion"):
                self._tell(before, item)
        for key in old.keys() - fresh.keys():
            self._tell(old[key], None)
        self.gone = False
        self.synced.set()
        return version

    async def _pages(self) -> tuple[dict[tuple[str, str], Object], str]:
        """All objects, and the revision that they are of."""
        keep = self._keep
        more: dict[str, Any] = {"limit": self._page} if self._page else {}
        fresh: dict[tuple[str, str], Object] = {}
        while True:
            page = await self._client.list(self.gvr, self._namespace, **self._query, **more)
            fresh.update((key_of(item), keep(item)) for item in page.get("items") or [])
            version: str = page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue")
            if not token:
                return fresh, version
            more = {"limit": self._page, "continue": token}

    async def _watch(self, version: str) -> str:
        """Returns the version from which to watch on; raises StatusError when the server ends it with one."""
        events = self._client.watch(self.gvr, self._namespace, resourceVersion=version, allowWatchBookmarks=True, **self._query)
        async for event in events:
            if event.type == "ERROR":
                raise StatusError(int(event.object.get("code", 500)), event.object.get("reason", ""), event.object.get("message", ""))
            version = self.version = event.object["metadata"]["resourceVersion"]
            if event.type == "BOOKMARK":
                continue
            key, kept = key_of(event.object), self._keep(event.object)
            before = self.objects.get(key)
            if event.type == "DELETED":
                self.objects.pop(key, None)
                self._tell(before or kept, None)
            else:
                self.objects[key] = kept
                self._tell(before, kept)
        return version

    def _tell(self, old: Object | None, new: Object | None) -> None:
        began = time.perf_counter()
        for handler in self.handlers:
            handler(old, new)
        _HANDLING.count(self._handling, time.perf_counter() - began)


def _everything(obj: Object) -> Object:
    return obj


_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "ownerReferences", "finalizers", "deletionTimestamp")


def keep_metadata(obj: Object) -> Object:
    """What an object is called, who owns it, and how it goes."""
    metadata = obj["metadata"]
    return {"metadata": {name: metadata[name] for name in _METADATA if name in metadata}}


def key_of(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _versions() -> list[tuple[tuple[str, ...], float]]:
    """Of two of one resource that of the one that is behind."""
    found: dict[tuple[str, ...], float] = {}
    for informer in list(_informers):
        if informer.version.isdigit():
            of, version = (_NAME, *informer.gvr), float(int(informer.version) % 10**15)
            found[of] = min(found.get(of, version), version)
    return sorted(found.items())


GaugeFunction("informer_store_resource_version", "The 15 least significant digits of the resource version of the store.", _OF, _versions)
