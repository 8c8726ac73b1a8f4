"""`Delegation`: the delegation chain in one process: each local group goes to the server that has it, the rest to the last one.

Upstream chains aggregator → kube-apiserver → apiextensions by not-found handlers; with the groups known a look-up does.
"""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.generic.request import Handler, Request, Response
from tetrapod.generic.server import GenericAPIServer


class Delegation:
    """`front` answers what names no group (health, version, OpenAPI); `last` answers groups that nobody installed."""

    def __init__(self, front: GenericAPIServer, servers: Sequence[GenericAPIServer], last: Handler) -> None:
        self._front = front
        self._last = last
        self._by_group: dict[str, GenericAPIServer] = {}
        for server in (front, *servers):
            for gv in server.source.group_versions():
                self._by_group[gv.group] = server

    async def handle(self, request: Request) -> Response:
        group = group_of(request)
        if group is None:
            return await self._front.director(request)
        server = self._by_group.get(group)
        return await (server.director(request) if server is not None else self._last(request))


def group_of(request: Request) -> str | None:
    """The API group that a path names; None where it names none."""
    info = request.info
    if info is not None and info.is_resource_request:
        return info.api_group
    parts = request.path.split("/")
    if parts[1] == "api" and (len(parts) > 2 or request.path == "/api"):
        return ""
    return parts[2] if parts[1] == "apis" and len(parts) > 2 and parts[2] else None
