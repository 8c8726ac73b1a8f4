"""`Client`: the interface through which a server's own controllers use the API, watches included.

There are two transports: in process (a `Handler`) and HTTPS (to the aggregator). Controllers do not know which one is
used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Protocol

import msgspec

from tetrapod.machinery.gvk import GroupVersionResource, Object


class ClientEvent(NamedTuple):
    """An event of a watch.

    Attributes:
        type: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
        object: the object; for ERROR a Status, for BOOKMARK an object with only a resource version.
    """

    type: str
    object: Object


class Client(Protocol):
    """A client of the API. Arguments in `query` become query parameters, except for those that are None or "".

    A namespace of "" means a cluster-scoped resource, or all namespaces. The methods that write return the object that
    the server returned.

    Raises:
        StatusError: the server returned an error. `raw` alone returns error responses instead.
        Unavailable: the server cannot be reached.
    """

    async def get(self, gvr: GroupVersionResource, namespace: str, name: str, *, subresource: str = "") -> Object: ...

    async def list(
        self,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        metadata_only: bool = False,
        only: type[msgspec.Struct] | None = None,
        **query: Any,
    ) -> Object:
        """Return a list object, such as a PodList, of one page if `query` has a `limit`.

        Args:
            gvr: the resource.
            namespace: the namespace; "" for all.
            metadata_only: request a PartialObjectMetadataList instead.
            only: the fields of each object to decode; the result has no others. None decodes all.
            query: query parameters, such as `labelSelector`.

        Raises:
            StatusError: the server returned an error.
            Unavailable: the server cannot be reached.
        """
        ...

    def watch(
        self,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        metadata_only: bool = False,
        only: type[msgspec.Struct] | None = None,
        **query: Any,
    ) -> AsyncIterator[ClientEvent]:
        """Yield the events of a watch until the server ends it.

        Args:
            gvr: the resource.
            namespace: the namespace; "" for all.
            metadata_only: request PartialObjectMetadata instead of whole objects.
            only: the fields of each object to decode; the events have no others. None decodes all.
            query: query parameters, such as `resourceVersion`.

        Raises:
            StatusError: the server rejected the watch. An error in a watch that has begun is an event of type ERROR.
            Unavailable: the server cannot be reached, or the connection broke.
        """
        ...

    async def create(
        self,
        gvr: GroupVersionResource,
        namespace: str,
        obj: Object,
        *,
        name: str = "",
        subresource: str = "",
        **query: Any,
    ) -> Object: ...

    async def update(
        self, gvr: GroupVersionResource, namespace: str, obj: Object, *, subresource: str = "", **query: Any
    ) -> Object: ...

    async def patch(
        self,
        gvr: GroupVersionResource,
        namespace: str,
        name: str,
        patch: Any,
        *,
        type: str = "merge",
        subresource: str = "",
        **query: Any,
    ) -> Object:
        """Patch an object or a subresource, and return the result.

        Args:
            gvr: the resource.
            namespace: the namespace; "" if the resource is cluster-scoped.
            name: the name.
            patch: the patch: an object, a list of operations, or encoded bytes.
            type: merge, json, strategic or apply.
            subresource: the subresource; "" for the object itself.
            query: query parameters, such as `fieldManager`.

        Raises:
            StatusError: the server returned an error, such as a 404 or 409.
            Unavailable: the server cannot be reached.
        """
        ...

    async def delete(
        self, gvr: GroupVersionResource, namespace: str, name: str, options: Object | None = None
    ) -> Object: ...

    async def delete_collection(
        self, gvr: GroupVersionResource, namespace: str, options: Object | None = None, **query: Any
    ) -> Object: ...

    async def raw(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]: ...
