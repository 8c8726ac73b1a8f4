"""`Rest`: a resource or subresource that does not use the generic store (reviews, eviction, log).

A Rest overrides the verbs that its declaration lists. The endpoints decode, admit and encode for it, except for
`connect`, which gets the raw request. Upstream: rest.Storage and its optional interfaces
"""

from __future__ import annotations

from typing import Any

from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import TableConvertor


class Rest:
    """The handler of a resource or subresource."""

    keeps_system_metadata: bool = False
    """Whether an object created through the subresource may contain its parent's uid (bindings)."""

    also_accepts: frozenset[str] = frozenset()
    """Other apiVersions of its kind with the same structure that a body may have (upstream:
    rest.GroupVersionAcceptor).
    """

    @property
    def table(self) -> TableConvertor | None:
        """The table columns of a subresource's own kind, or None if it has no table."""
        return None

    def default(self, obj: Object) -> None:
        """Apply upstream's SetDefaults_ functions of a subresource's own kind (TokenRequest).

        This happens before managed fields are recorded.
        """

    async def get(self, ctx: Context, name: str) -> Object:
        """Return the object."""
        raise NotImplementedError

    async def list(self, ctx: Context, options: Any) -> Object:
        """Return a complete list object."""
        raise NotImplementedError

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        """Create an object.

        Args:
            name: the parent's name for a subresource (`pods/NAME/eviction`), else "".
            validate: runs validating admission.
        """
        raise NotImplementedError

    async def update(
        self, ctx: Context, name: str, transform: Any, validate: Any, options: Object
    ) -> tuple[Object, bool]:
        """Update the object. `await transform(current)` returns the object to store.

        Returns:
            the object, and whether it was created.
        """
        raise NotImplementedError

    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        """Serve any method on the subresource's path and the paths below it (proxy, exec, log)."""
        raise NotImplementedError
