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
    """An event of a watch. The object of an ERROR event is a Status."""

    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
    object: Object


class Client(Protocol):
    """A client of the API.

    Every method raises StatusError for error responses, and `Unavailable` if the server cannot be reached.
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
        """Return a list.

        With `metadata_only` it is a PartialObjectMetadataList; with `only` just these fields of each object are
        decoded.
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
        """Yield watch events; `metadata_only` and `only` are as for `list`."""
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
        """Patch an object. `type` is merge, json, strategic or apply."""
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
