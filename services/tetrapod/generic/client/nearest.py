"""`NearestClient`: a client that calls this process for the groups it serves, and the aggregator for all others.

The controllers of a service watch dozens of its own resources. Over the network each watch would be two TLS connections that all
events cross.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from tetrapod.generic.client.interface import Client, ClientEvent
from tetrapod.machinery.gvk import GroupVersionResource, Object


class NearestClient:
    """Implements `Client`. `is_here` returns whether `here` serves a group; non-resource requests are sent `there`."""

    def __init__(self, here: Client, there: Client, is_here: Callable[[str], bool]) -> None:
        self._here = here
        self._there = there
        self._is_here = is_here

    def _of(self, gvr: GroupVersionResource) -> Client:
        return self._here if self._is_here(gvr.group) else self._there

    async def get(self, gvr: GroupVersionResource, namespace: str, name: str, *, subresource: str = "") -> Object:
        return await self._of(gvr).get(gvr, namespace, name, subresource=subresource)

    async def list(
        self,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        metadata_only: bool = False,
        only: type[msgspec.Struct] | None = None,
        **query: Any,
    ) -> Object:
        return await self._of(gvr).list(gvr, namespace, metadata_only=metadata_only, only=only, **query)

    def watch(
        self,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        metadata_only: bool = False,
        only: type[msgspec.Struct] | None = None,
        **query: Any,
    ) -> AsyncIterator[ClientEvent]:
        return self._of(gvr).watch(gvr, namespace, metadata_only=metadata_only, only=only, **query)

    async def create(
        self, gvr: GroupVersionResource, namespace: str, obj: Object, *, name: str = "", subresource: str = "", **query: Any
    ) -> Object:
        return await self._of(gvr).create(gvr, namespace, obj, name=name, subresource=subresource, **query)

    async def update(self, gvr: GroupVersionResource, namespace: str, obj: Object, *, subresource: str = "", **query: Any) -> Object:
        return await self._of(gvr).update(gvr, namespace, obj, subresource=subresource, **query)

    async def patch(
        self, gvr: GroupVersionResource, namespace: str, name: str, patch: Any, *, type: str = "merge", subresource: str = "", **query: Any
    ) -> Object:
        return await self._of(gvr).patch(gvr, namespace, name, patch, type=type, subresource=subresource, **query)

    async def delete(self, gvr: GroupVersionResource, namespace: str, name: str, options: Object | None = None) -> Object:
        return await self._of(gvr).delete(gvr, namespace, name, options)

    async def delete_collection(self, gvr: GroupVersionResource, namespace: str, options: Object | None = None, **query: Any) -> Object:
        return await self._of(gvr).delete_collection(gvr, namespace, options, **query)

    async def raw(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        return await self._there.raw(method, path, body, headers)
