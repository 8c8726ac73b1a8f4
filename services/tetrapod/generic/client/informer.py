"""`Informer`: a local copy of the objects of a resource, maintained by list and watch, which calls handlers on changes.

Controllers use it. Upstream: k8s.io/client-go/tools/cache (SharedInformer).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import PAGE
from tetrapod.generic.client.reflector import NAME, OF, Key, Reflector
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.machinery.gvk import GroupVersionResource, Object

_HANDLING: Final = Histogram(
    "informer_processing_latency_seconds",
    "Time taken to process events after popping from the queue.",
    OF,
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)

OnChange = Callable[[Object | None, Object | None], None]
"""Called with the old and the new object: None and new for an addition, old and None for a deletion."""


class Informer(Reflector):
    """The objects of one resource, kept up to date.

    Attributes:
        objects: the objects by (namespace, name). They are shared and must not be modified. They are complete once
            `synced` is set.
        handlers: functions that are called with the old and the new object after each change: None and the object for
            an addition, the object and None for a deletion.
    """

    def __init__(
        self,
        client: Client,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        transform: Callable[[Object], Object] | None = None,
        only: type[msgspec.Struct] | None = None,
        page: int = PAGE,
    ) -> None:
        """Create an informer; `run` starts it.

        Args:
            client: the client to list and watch with.
            gvr: the resource.
            namespace: the namespace; "" for all.
            label_selector: the label selector of list and watch; "" for all objects.
            field_selector: the field selector of list and watch; "" for all objects.
            transform: returns the part of an object to store (upstream: client-go's TransformFunc); None to store it
                all.
            only: the fields of each object to decode; the others never become Python objects. None decodes all.
            page: objects in one page of a list.
        """
        super().__init__(
            client, gvr, namespace, label_selector=label_selector, field_selector=field_selector, only=only, page=page
        )
        self.objects: dict[Key, Object] = {}
        self.handlers: list[OnChange] = []
        self._transform = transform
        self._handling = _HANDLING.row((NAME, *gvr))

    def get(self, namespace: str, name: str) -> Object | None:
        """Return the stored object (not a copy), or None if it is not present."""
        return self.objects.get((namespace, name))

    async def run(self) -> None:
        """List and watch until cancelled. Errors are logged and retried with backoff."""
        try:
            await super().run()
        finally:
            if self.gone:
                group, version, resource = self.gvr
                _HANDLING.drop({"group": group, "version": version, "resource": resource})

    def _stored_keys(self) -> Collection[Key]:
        return self.objects.keys()

    def _put(self, key: Key, obj: Object) -> None:
        stored = obj if self._transform is None else self._transform(obj)
        previous = self.objects.get(key)
        self.objects[key] = stored
        if previous is None or previous["metadata"].get("resourceVersion") != stored["metadata"].get("resourceVersion"):
            self._notify(previous, stored)

    def _remove(self, key: Key, obj: Object | None) -> None:
        last = self.objects.pop(key, None) or obj
        if last is not None:
            self._notify(last, None)

    def _notify(self, old: Object | None, new: Object | None) -> None:
        began = time.perf_counter()
        for handler in self.handlers:
            handler(old, new)
        _HANDLING.count(self._handling, time.perf_counter() - began)
