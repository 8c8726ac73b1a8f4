"""Where the objects of a kind are served, by discovery (upstream: meta.RESTMapper)."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from tetrapod.generic.client.interface import Client
from tetrapod.generic.unavailable import Unavailable
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource
from tetrapod.machinery.status import StatusError


class Mapping(NamedTuple):
    """Where the objects of a kind are served."""

    resource: GroupVersionResource
    namespaced: bool


async def find_resource(client: Client, kind: GroupVersionKind) -> Mapping | None:
    """None if nobody serves the kind (or nobody says)."""
    path = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    try:
        code, body = await client.raw("GET", path)
    except (StatusError, Unavailable, OSError):
        return None
    if code != 200:
        return None
    for found in orjson.loads(body).get("resources") or ():
        if found.get("kind") != kind.kind or "/" in found["name"]:
            continue
        if found.get("group", kind.group) == kind.group and found.get("version", kind.version) == kind.version:
            return Mapping(GroupVersionResource(kind.group, kind.version, found["name"]), found["namespaced"])
    return None
