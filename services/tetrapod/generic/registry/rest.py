"""`Rest`: a resource or subresource that answers itself instead of through the generic store (reviews, eviction, log).

A Rest overrides the verbs that its declaration lists; the endpoints do decoding, admission and encoding around it, except
for `connect`, which gets the raw request. Upstream: rest.Storage and its optional interfaces.
"""

from __future__ import annotations

from typing import Any

from tetrapod.generic.registry.context import Context
from tetrapod.generic.request import Request, Response
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import TableConvertor


class Rest:
    keeps_system_metadata: bool = False
    """What is created through a subresource may name its parent's uid (bindings)."""

    also_accepts: frozenset[str] = frozenset()
    """Other apiVersions of its kind, of the same shape, that a body may have (upstream: rest.GroupVersionAcceptor)."""

    @property
    def table(self) -> TableConvertor | None:
        """How a subresource's own kind is printed; None: it has no table."""
        return None

    def default(self, obj: Object) -> None:
        """Upstream's SetDefaults_ functions of a subresource's own kind (TokenRequest), before ownership is recorded."""

    async def get(self, ctx: Context, name: str) -> Object:
        raise NotImplementedError

    async def list(self, ctx: Context, options: Any) -> Object:
        """A whole list object."""
        raise NotImplementedError

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        """`name` is the parent's for a subresource (`pods/NAME/eviction`), else "". `validate` runs validating admission."""
        raise NotImplementedError

    async def update(self, ctx: Context, name: str, transform: Any, validate: Any, options: Object) -> tuple[Object, bool]:
        """`await transform(current)` gives the object to store; returns it and whether it was created."""
        raise NotImplementedError

    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        """Everything below the subresource's path, any method (proxy, exec, log)."""
        raise NotImplementedError
