"""`SplitClient`: a client that calls the servers in this process for their groups, and the aggregator for all others.

The controllers of a service watch dozens of its own resources. Through the aggregator, each event would cross two TLS
connections.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from tetrapod.generic.client.interface import Client, ClientEvent
from tetrapod.machinery.gvk import GroupVersionResource, Object


class SplitClient:
    """A `Client` that chooses between two clients by the API group. Non-resource requests go to `remote`.

    Args:
        local: the client of the groups that this process serves.
        remote: the client of all other groups.
        is_local: returns whether `local` serves a group.
    """

    def __init__(self, local: Client, remote: Client, is_local: Callable[[str], bool]) -> None:
        self._local = local
        self._remote = remote
        self._is_local = is_local

    def _client_for(self, gvr: GroupVersionResource) -> Client:
        return self._local if self._is_local(gvr.group) else self._remote

    async def get(self, gvr: GroupVersionResource, namespace: str, name: str, *, subresource: str = "") -> Object:
        return await self._client_for(gvr).get(gvr, namespace, name, subresource=subresource)

    async def list(
        self,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        metadata_only: bool = False,
        only: type[msgspec.Struct] | None = None,
        **query: Any,
    ) -> Object:
        return await self._client_for(gvr).list(gvr, namespace, metadata_only=metadata_only, only=only, **query)

    def watch(
        self,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        metadata_only: bool = False,
        only: type[msgspec.Struct] | None = None,
        **query: Any,
    ) -> AsyncIterator[ClientEvent]:
        return self._client_for(gvr).watch(gvr, namespace, metadata_only=metadata_only, only=only, **query)

    async def create(
        self,
        gvr: GroupVersionResource,
        namespace: str,
        obj: Object,
        *,
        name: str = "",
        subresource: str = "",
        **query: Any,
    ) -> Object:
        return await self._client_for(gvr).create(gvr, namespace, obj, name=name, subresource=subresource, **query)

    async def update(
        self, gvr: GroupVersionResource, namespace: str, obj: Object, *, subresource: str = "", **query: Any
    ) -> Object:
        return await self._client_for(gvr).update(gvr, namespace, obj, subresource=subresource, **query)

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
        return await self._client_for(gvr).patch(
            gvr, namespace, name, patch, type=type, subresource=subresource, **query
        )

    async def delete(
        self, gvr: GroupVersionResource, namespace: str, name: str, options: Object | None = None
    ) -> Object:
        return await self._client_for(gvr).delete(gvr, namespace, name, options)

    async def delete_collection(
        self, gvr: GroupVersionResource, namespace: str, options: Object | None = None, **query: Any
    ) -> Object:
        return await self._client_for(gvr).delete_collection(gvr, namespace, options, **query)

    async def raw(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        return await self._remote.raw(method, path, body, headers)
