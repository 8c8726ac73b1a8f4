"""`Rest`: a resource or subresource that does not use the generic store (reviews, eviction, log).

A subclass overrides the verbs that its definition lists. The endpoints decode, admit and encode for it, except for
`connect`, which gets the raw request.
Upstream: rest.Storage and its optional interfaces
"""

from __future__ import annotations

from typing import Any

from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.registry.context import Context
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import TableConvertor


class Rest:
    """The handler of a resource or subresource without a store. Its methods raise StatusError to reject a request.

    Attributes:
        keeps_system_metadata: whether the uid and other system metadata in the body of a create are kept instead of
            removed. A body may then name the uid of its parent as a precondition (bindings, token requests).
        also_accepts: other apiVersions of its kind with the same structure that a body may have (upstream:
            rest.GroupVersionAcceptor).
    """

    keeps_system_metadata: bool = False

    also_accepts: frozenset[str] = frozenset()

    @property
    def table(self) -> TableConvertor | None:
        """The table columns of a subresource's own kind, or None if it has no table."""
        return None

    def default(self, obj: Object) -> None:
        """Set defaults of a subresource's own kind (TokenRequest) in place, as upstream's SetDefaults_ functions.

        This happens before managed fields are recorded.
        """

    async def get(self, ctx: Context, name: str) -> Object:
        """Return the object with this name, in the version of the request.

        Raises:
            StatusError: 404, it does not exist.
        """
        raise NotImplementedError

    async def get_at_version(self, ctx: Context, name: str, resource_version: str) -> Object:
        """Return the object as `get` does, for a request with a resourceVersion, which is ignored by default.

        Args:
            ctx: the context of the request.
            name: the name of the object.
            resource_version: the version that the stored object must at least have; "" for the most recent one.

        Raises:
            StatusError: 404, it does not exist.
        """
        return await self.get(ctx, name)

    async def list(self, ctx: Context, options: Any) -> Object:
        """Return a complete list object, with kind and items.

        Args:
            options: the `ListOptions` of the request.

        Raises:
            StatusError: the request is rejected.
        """
        raise NotImplementedError

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        """Process a POST, and return the object of the response.

        Args:
            name: the parent's name for a subresource (`pods/NAME/eviction`), else "".
            obj: the decoded and admitted object of the body.
            validate: runs validating admission: `await validate(obj)`, which raises to reject.
            options: the CreateOptions object.
        """
        raise NotImplementedError

    async def update(
        self,
        ctx: Context,
        name: str,
        transform: Any,
        validate: Any,
        preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> Object:
        """Process a PUT or PATCH of an object that exists, and return the object of the response.

        Args:
            transform: `await transform(current)` returns the new object, made from the current one as `get` returns it.
            validate: runs validating admission: `await validate(new, old)`, which raises to reject.
            preconditions: the uid that the stored object must have.

        Raises:
            StatusError: the update failed; 404, before `transform` is called, if the object does not exist.
        """
        raise NotImplementedError

    async def connect(self, ctx: Context, name: str, options: Object, request: Request) -> Response:
        """Serve a request of any method on the subresource or a path below it (proxy, exec, log).

        Args:
            name: the parent's name.
            options: the admitted options object (PodExecOptions); {} for a subresource without one (log).
        """
        raise NotImplementedError
