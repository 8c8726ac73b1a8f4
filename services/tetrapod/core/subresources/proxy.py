"""The base of `pods/proxy`, `services/proxy` and `nodes/proxy`. Upstream: pkg/registry/core/{pod,service,node}, ResourceLocation."""

from __future__ import annotations

from tetrapod.core.subresources.locations import Backends, proxy
from tetrapod.core.subresources.stores import Stores
from tetrapod.generic.proxy import Endpoint
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.request import Request, Response


class ProxyRest(Rest):
    """A subresource that forwards requests to the endpoint that `locate` returns."""

    def __init__(self, stores: Stores, backends: Backends) -> None:
        self._stores = stores
        self._backends = backends

    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        return await proxy(self._backends.pool, await self.locate(ctx, name), request, path)

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        """Return the endpoint for a name with optional scheme and port, raising StatusError."""
        raise NotImplementedError
