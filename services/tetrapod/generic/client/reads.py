"""Reads of one object that may not exist, and of long lists in pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError


async def get_or_none(client: Client, gvr: GroupVersionResource, namespace: str, name: str) -> Object | None:
    """Return an object, or None if it does not exist.

    Raises:
        StatusError: the server returned an error other than 404.
        Unavailable: the server cannot be reached.
    """
    try:
        return await client.get(gvr, namespace, name)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


PAGE: Final = 250
"""Objects in one page. Decoding a page blocks the event loop, for a millisecond with small objects."""


async def pages(
    client: Client, gvr: GroupVersionResource, namespace: str = "", *, size: int = PAGE, **query: Any
) -> AsyncIterator[Object]:
    """Yield the pages of a list, each a list object of the same resource version. Other tasks run between two pages.

    Args:
        client: the client.
        gvr: the resource.
        namespace: the namespace; "" for all.
        size: objects in one page.
        query: further arguments of `Client.list`.

    Raises:
        StatusError: 410 if the resource version of the list has expired in between.
        Unavailable: the server cannot be reached.
    """
    more: dict[str, Any] = {"limit": size}
    while True:
        page = await client.list(gvr, namespace, **query, **more)
        await asyncio.sleep(0)  # in one process, nothing else may have suspended this task
        yield page
        token = page["metadata"].get("continue")
        if not token:
            return
        more = {"limit": size, "continue": token}
