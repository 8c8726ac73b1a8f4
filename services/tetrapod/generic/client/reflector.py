"""`Reflector`: lists and watches one resource and passes its objects to a subclass, which stores what it needs.

`Informer` stores whole objects; the garbage collector stores the nodes of its graph. A watch that ends is resumed. If
its resource version is too old, the objects are listed again. An unavailable server is retried with backoff.
Upstream: k8s.io/client-go/tools/cache/reflector.go
"""

from __future__ import annotations

import asyncio
import logging
import random
import weakref
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import PAGE, pages
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.metrics.counters import Counter, GaugeFunction
from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Namespace and name."""

OF: Final = ("name", "group", "version", "resource")
NAME: Final = "kube-apiserver"
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 10.0
_LONGEST_FIRST_WAIT: Final = 0.25
"""Before the first list the backoff is shorter, because services that start together wait for each other."""
SKIPPED: Final = Counter(
    "informer_skipped_objects_total", "Number of objects that could not be read, and were skipped.", OF
)
STEP_SECONDS: Final = 0.001
"""Seconds for which listed objects are passed on before other tasks of the event loop run."""

_reflectors: Final[weakref.WeakSet[Reflector]] = weakref.WeakSet()


class Reflector(ABC):
    """A list and watch loop over one resource. Subclasses store the objects.

    Attributes:
        synced: set once all objects of the first list have been stored.
        version: the resource version up to which changes have been stored; "" before the first list.
        gone: whether the server answered the last list or watch with 404 or 405: it does not serve the resource.
    """

    def __init__(
        self,
        client: Client,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        only: type[msgspec.Struct] | None = None,
        page: int = PAGE,
    ) -> None:
        """Create a reflector; `run` starts it.

        Args:
            client: the client to list and watch with.
            gvr: the resource.
            namespace: the namespace; "" for all.
            label_selector: the label selector of list and watch; "" for all objects.
            field_selector: the field selector of list and watch; "" for all objects.
            metadata_only: request PartialObjectMetadata.
            only: the fields of each object to decode; the others never become Python objects. None decodes all.
            page: objects in one page of a list.
        """
        self.gvr = gvr
        self.synced = asyncio.Event()
        self.version = ""
        self.gone = False
        self._client = client
        self._namespace = namespace
        self._page = page
        self._query: dict[str, Any] = {"labelSelector": label_selector, "fieldSelector": field_selector}
        if metadata_only:
            self._query["metadata_only"] = True
        if only is not None:
            self._query["only"] = only
        _reflectors.add(self)

    @abstractmethod
    def _stored_keys(self) -> Collection[Key]:
        """Return the keys of the stored objects. After a list, keys that were not listed are passed to `_remove`."""

    @abstractmethod
    def _put(self, key: Key, obj: Object) -> None:
        """Store an object that was added or changed, or that a list contained; subclasses implement this."""

    @abstractmethod
    def _remove(self, key: Key, obj: Object | None) -> None:
        """Remove a stored object; subclasses implement this.

        Args:
            key: the namespace and name of the object.
            obj: its last state, or None if it was missing in a new list.
        """

    async def run(self) -> None:
        """List and watch until cancelled. Errors are logged and retried with backoff."""
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
            except (Unavailable, OSError, msgspec.DecodeError) as error:
                log.log(
                    logging.WARNING if isinstance(error, msgspec.DecodeError) else logging.DEBUG,
                    "informer %s: %s",
                    self.gvr,
                    error,
                )
                version = "" if isinstance(error, msgspec.DecodeError) else version
                await asyncio.sleep(wait * random.uniform(0.8, 1.2))
                wait = min(wait * 2, _LONGEST_WAIT if self.synced.is_set() else _LONGEST_FIRST_WAIT)

    async def _list(self) -> str:
        """List and store all objects page by page, then remove those that no longer exist, and set `synced`.

        Returns:
            The resource version of the list.

        Raises:
            StatusError: the server returned an error; objects that were stored before remain.
            Unavailable: the server cannot be reached.
        """
        missing, version = set(self._stored_keys()), ""
        async for page in pages(self._client, self.gvr, self._namespace, size=self._page, **self._query):
            await self._put_all(page.get("items") or (), missing)
            version = page["metadata"]["resourceVersion"]
        for key in missing:
            self._remove(key, None)
        self.gone = False
        self.synced.set()
        return version

    async def _put_all(self, items: Iterable[Object], missing: set[Key]) -> None:
        timer = YieldTimer(STEP_SECONDS)
        for item in items:
            try:
                key = key_of(item)
                missing.discard(key)
                self._put(key, item)
            except Exception as error:
                self._skip(item, error)
            await timer.yield_if_due()

    async def _watch(self, version: str) -> str:
        """Watch from a resource version and store the changes, until the server ends the watch.

        Returns:
            The resource version from which to resume.

        Raises:
            StatusError: the server rejected the watch or sent an ERROR event; 410 if the version is too old.
        """
        events = self._client.watch(
            self.gvr, self._namespace, resourceVersion=version, allowWatchBookmarks=True, **self._query
        )
        async for event in events:
            if event.type == "ERROR":
                raise StatusError(
                    int(event.object.get("code", 500)), event.object.get("reason", ""), event.object.get("message", "")
                )
            try:
                version = self.version = event.object["metadata"]["resourceVersion"]
                if event.type == "DELETED":
                    self._remove(key_of(event.object), event.object)
                elif event.type != "BOOKMARK":
                    self._put(key_of(event.object), event.object)
            except Exception as error:
                self._skip(event.object, error)
        return version

    def _skip(self, obj: Object, error: Exception) -> None:
        """Log and count an object that cannot be stored, instead of raising the error.

        The object was not validated, because an external server or another program has written it. The error must not
        end the loop, which stores all other objects of the resource. The next change or list of the object tries to
        store it again.
        """
        SKIPPED.add((NAME, *self.gvr))
        log.warning("informer %s: skipping an object (%.200r): %r", self.gvr, obj.get("metadata"), error)


def key_of(obj: Object) -> Key:
    """Return the namespace ("" if it has none) and the name of an object."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _versions() -> list[tuple[tuple[str, ...], float]]:
    """Return the values of the metric `informer_store_resource_version`: (label values, value) for each resource.

    If a resource has several reflectors, the value is the lowest of their resource versions.
    """
    versions: dict[tuple[str, ...], float] = {}
    for reflector in list(_reflectors):
        if reflector.version.isdigit():
            labels, version = (NAME, *reflector.gvr), float(int(reflector.version) % 10**15)
            versions[labels] = min(versions.get(labels, version), version)
    return sorted(versions.items())


GaugeFunction(
    "informer_store_resource_version",
    "The 15 least significant digits of the resource version of the store.",
    OF,
    _versions,
)
