"""`Client`: how a server's own controllers use the API: through the front door, as a user would, with watches.

Two transports: in process (a `Handler`) and HTTPS (to the aggregator). Controllers do not know which.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Protocol

import msgspec

from tetrapod.machinery.gvk import GroupVersionResource, Object


class ClientEvent(NamedTuple):
    """An event of a watch; the object of an ERROR is a Status."""

    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
    object: Object


class Client(Protocol):
    """Every method raises StatusError for what the server refuses, and `Unavailable` where it cannot be reached."""

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
        """`metadata_only`: a PartialObjectMetadataList. `only`: of each object no more than these fields is made."""
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
        """`metadata_only`: events of PartialObjectMetadata; `only` as for `list`."""
        ...

    async def create(
        self, gvr: GroupVersionResource, namespace: str, obj: Object, *, name: str = "", subresource: str = "", **query: Any
    ) -> Object: ...

    async def update(self, gvr: GroupVersionResource, namespace: str, obj: Object, *, subresource: str = "", **query: Any) -> Object: ...

    async def patch(
        self, gvr: GroupVersionResource, namespace: str, name: str, patch: Any, *, type: str = "merge", subresource: str = "", **query: Any
    ) -> Object:
        """`type` is merge, json, strategic or apply."""
        ...

    async def delete(self, gvr: GroupVersionResource, namespace: str, name: str, options: Object | None = None) -> Object: ...

    async def delete_collection(self, gvr: GroupVersionResource, namespace: str, options: Object | None = None, **query: Any) -> Object: ...

    async def raw(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> tuple[int, bytes]: ...
