"""The resource of a kind, found by discovery (upstream: meta.RESTMapper)."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource
from tetrapod.machinery.status import StatusError


class Mapping(NamedTuple):
    """The resource of a kind, and whether it is namespaced."""

    resource: GroupVersionResource
    namespaced: bool


async def find_resource(client: Client, kind: GroupVersionKind) -> Mapping | None:
    """Return the resource of a kind by requesting discovery, or None if the kind is not served or discovery fails."""
    path = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    try:
        code, body = await client.raw("GET", path)
    except (StatusError, Unavailable, OSError):
        return None
    if code != 200:
        return None
    for resource in orjson.loads(body).get("resources") or ():
        if resource.get("kind") != kind.kind or "/" in resource["name"]:
            continue
        if resource.get("group", kind.group) == kind.group and resource.get("version", kind.version) == kind.version:
            return Mapping(GroupVersionResource(kind.group, kind.version, resource["name"]), resource["namespaced"])
    return None
