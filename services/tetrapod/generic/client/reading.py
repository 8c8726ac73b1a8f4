"""Reads of what may not be there."""

from __future__ import annotations

from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError


async def get_if_there(client: Client, gvr: GroupVersionResource, namespace: str, name: str) -> Object | None:
    """None where there is none. Raises StatusError (none of 404), Unavailable."""
    try:
        return await client.get(gvr, namespace, name)
    except StatusError as error:
        if error.code != 404:
            raise
        return None
