"""The delegation chain in one process.

Requests for a local group go to the server that has it, all others to the last handler.

Upstream chains aggregator → kube-apiserver → apiextensions by not-found handlers. As the groups are known, a lookup
suffices here.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from tetrapod.aggregator.delegation.groups import group_of
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.server.server import GenericAPIServer


class LocalDelegation:
    """The handler that passes each request to the server of its API group, for services in one process.

    Args:
        aggregator: the server of paths without a group (health, version, OpenAPI) and of the aggregator's own group.
        servers: the servers of the other local groups.
        last: the handler of groups that no server has installed.
    """

    def __init__(self, aggregator: GenericAPIServer, servers: Sequence[GenericAPIServer], last: Handler) -> None:
        self._aggregator = aggregator
        self._last = last
        self._by_group: dict[str, GenericAPIServer] = {}
        for server in (aggregator, *servers):
            for gv in server.source.group_versions():
                self._by_group[gv.group] = server

    def handle(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Pass a request to the server of its group and return the response."""
        group = group_of(request)
        if group is None:
            return self._aggregator.director(request)
        server = self._by_group.get(group)
        return server.director(request) if server is not None else self._last(request)
