"""The delegation chain over the network: a request is forwarded to the peer service that serves its API group.

The aggregator is the front proxy of the services: it sends the user in headers, over mTLS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from tetrapod.aggregator.delegation.groups import AGGREGATOR_GROUP, group_of, is_custom, service_of
from tetrapod.aggregator.delegation.peer import PeerService
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.client.rest import RestClient
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.server.routes import paths_incomplete
from tetrapod.generic.server.server import GenericAPIServer

_START_TIMEOUT: Final = 20.0
"""Seconds after which the aggregator is ready without the discovery of a service, so that the groups of the others are
served.
"""


class RemoteDelegation:
    """The handler that passes each request to the service of its API group, for services in separate processes.

    Attributes:
        director: the handler for the requests of the aggregator's own controllers. It is that of `server` at first; the
            caller replaces it by that of the assembled aggregator.

    Args:
        server: the server of the aggregator's own group and of paths without a group.
        peers: the peer services by name: "core", "extensions" and "auth".
    """

    def __init__(self, server: GenericAPIServer, peers: Mapping[str, PeerService]) -> None:
        self._server = server
        self._peers = peers
        self.director: Handler = server.director

    async def handle(self, request: Request) -> Response:
        """Pass a request to the peer service (core, auth or extensions) of its API group and return the response.

        Groups that are not built in go to extensions, which responds with 404 if it does not serve them. The aggregator
        itself serves its own group and paths without a group, except OpenID discovery, which goes to auth.

        Raises:
            StatusError: 503, the group is not built in, and the APIServices have not been read yet.
        """
        group = group_of(request)
        if group is None:
            if request.path.startswith(("/.well-known/openid-configuration", "/openid/")):
                return await self._peers["auth"].handle(request)
            return await self._server.director(request)
        if group == AGGREGATOR_GROUP:
            return await self._server.director(request)
        if is_custom(group) and not self._server.lifecycle.has_all_paths():
            # An APIService may name another server for the group. The extensions service would respond with 404.
            raise paths_incomplete()
        return await self._peers[service_of(group)].handle(request)

    def client(self, user_agent: str) -> RestClient:
        """Return a client that passes its requests to `director`, within this process.

        The attribute is read at each request, so it may be replaced later.
        """

        async def direct(request: Request) -> Response:
            return await self.director(request)

        return in_process_client(direct, user_agent)

    def register(self, lifecycle: Lifecycle) -> None:
        """Register the post-start hook that starts the periodic refresh of the peer services' discovery documents.

        The hook completes once those of all peer services have been read, but after 20 seconds at the latest.
        """

        async def follow() -> None:
            for peer in self._peers.values():
                lifecycle.background(f"discovery/{peer.name}", peer.follow())
            with suppress(TimeoutError):
                async with asyncio.timeout(_START_TIMEOUT):
                    await asyncio.gather(*(peer.discovered.wait() for peer in self._peers.values()))

        lifecycle.on_start("start-service-discovery", follow)
