"""PUT of an object, or of a subresource that updates it.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/update.go
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tetrapod.generic.endpoints.admission import RequestAdmission
from tetrapod.generic.endpoints.field_management import manager_name
from tetrapod.generic.endpoints.large_objects import set_large
from tetrapod.generic.endpoints.options import decode_write_options
from tetrapod.generic.endpoints.owner_references import dedup_owner_references
from tetrapod.generic.endpoints.path_identity import check_name, ensure_namespace
from tetrapod.generic.endpoints.request_body import read_body
from tetrapod.generic.endpoints.scope import Scope, request_name
from tetrapod.generic.endpoints.trace_attributes import STORING
from tetrapod.generic.http.negotiation.accept import Accepted
from tetrapod.generic.http.negotiation.media_types import body_media_type, negotiate
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.observability.tracing.spans import current_span
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.errors import StoredTooLarge
from tetrapod.generic.scheduling.offload import in_thread, is_large, offloaded
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.writes import NO_PRECONDITIONS, Preconditions
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.raw_extensions import raw_paths
from tetrapod.machinery.serializer.raw_json import carry
from tetrapod.machinery.status import bad_request

Revise = Callable[[Object | None], Awaitable[Object]]
"""A function from the stored object (None: absent) to the requested object, both in the request's version."""


async def update(scope: Scope, request: Request) -> Response:
    """Serve a PUT: replace an object or its subresource, and return it with 200, or with 201 if it was created.

    Raises:
        StatusError: the request is malformed, rejected by admission or invalid, the object does not exist or was
            changed.
    """
    name = request_name(request)
    if not name:
        raise bad_request("name must be provided")
    accepted = negotiate(request, scope.offer)
    body = await read_body(request)
    options = decode_write_options(request.query(), "UpdateOptions")
    media_type = body_media_type(request, scope.offer)
    obj = await scope.decoder.decode_any(body, media_type, options.field_validation, request.warnings)
    large = is_large(body)
    if request.audit is not None:
        await offloaded(large, request.audit.request_object, obj, scope.gvr, scope.subresource, large)
    context = scope.context(request, options.dry_run)
    set_large(context, request, large=large)
    context.discard(obj)
    context.mismatch = scope.decoder.expect_kind(obj)
    ensure_namespace(obj, context.namespace)
    check_name(obj, name)
    await offloaded(context.large, dedup_owner_references, obj, request.warnings)
    manager = manager_name(request, options.field_manager)
    field_manager = scope.field_manager

    async def revise(current: Object | None) -> Object:
        new = await context.copy(obj)
        if context.large and raw_paths(scope.definition.group, scope.definition.kind):
            await in_thread(carry, obj, new)
        return (
            new
            if field_manager is None
            else await field_manager.run(context.large, lambda: field_manager.update(current, new, manager))
        )

    writing = Writing(
        scope, request, context, name, options.to_object("UpdateOptions"), options.to_object("CreateOptions")
    )
    uid = obj["metadata"].get("uid")
    return await writing.answer(revise, accepted, Preconditions(uid=uid) if uid else NO_PRECONDITIONS)


@dataclass(frozen=True, slots=True)
class Writing:
    """The common part of updates and patches: admission, the write and the response.

    Attributes:
        scope: the endpoint.
        request: the HTTP request.
        context: its registry context.
        name: the name in the path.
        update_options: the UpdateOptions object for admission.
        create_options: the CreateOptions object for admission, if the write creates the object.
        storing: the names of the events before and after the write in a trace; "" for none.
    """

    scope: Scope
    request: Request
    context: Context
    name: str
    update_options: Object
    create_options: Object
    storing: tuple[str, str] = STORING

    @property
    def admission(self) -> RequestAdmission:
        """The admission calls of this request."""
        return RequestAdmission(self.scope, self.request, self.context, self.name)

    async def answer(
        self,
        revise: Revise,
        accepted: Accepted,
        preconditions: Preconditions = NO_PRECONDITIONS,
        *,
        force_create: bool = False,
        applies: bool = False,
    ) -> Response:
        """Write the object that `revise` returns, and return the response: 201 if the object was created, else 200.

        An object that exceeds the store's size limit is stored without managed fields, unless this is server-side
        apply.

        Args:
            revise: computes the object to store from the stored one (None: it does not exist), both in the request's
                version; called again if another write came first.
            accepted: the media type and the form of the response.
            preconditions: the uid and resourceVersion that the stored object must have.
            force_create: create the object if it does not exist, regardless of the strategy.
            applies: whether this is server-side apply.

        Raises:
            StatusError: the object does not exist (404), was changed (409), is rejected by admission, is invalid (422),
                or is too large for the store (500).
        """
        scope = self.scope
        if scope.rest is not None:
            transform = self._rest_transform(revise)
            result = await scope.rest.update(self.context, self.name, transform, self._validate_update, preconditions)
            return await offloaded(self.context.large, scope.representation.object, result, accepted, 200)
        try:
            entry, created = await self._store_object(self._transform(revise), preconditions, force_create)
        # Managed fields can be large, so the object may fit without them. Server-side apply cannot do without them.
        except StoredTooLarge:
            if applies:
                raise
            entry, created = await self._store_object(
                _without_managed_fields(self._transform(revise)), preconditions, force_create
            )
        return await scope.representation.entry(entry, accepted, 201 if created else 200)

    async def _store_object(
        self, transform: Revise, preconditions: Preconditions, force_create: bool
    ) -> tuple[Entry, bool]:
        before, after = self.storing
        span = current_span()
        if before:
            span.event(before)
        stored = await self.scope.store.update(
            self.context,
            self.name,
            transform,
            validate_create=self._validate_create,
            validate_update=self._validate_update,
            preconditions=preconditions,
            strategy=self.scope.strategy,
            force_create=force_create,
        )
        span.event(after)
        return stored

    def _transform(self, revise: Revise) -> Revise:
        conversion = self.scope.representation.conversion

        async def transform(current: Object | None) -> Object:
            live = None
            if current is not None:
                live = (
                    current if conversion.identity else await conversion.from_stored(await self.context.copy(current))
                )
            new = await conversion.to_stored(await revise(live))
            self.context.discard(current)
            self.context.discard(new)
            return await self._admit(new, current)

        return transform

    def _rest_transform(self, revise: Revise) -> Revise:
        async def transform(current: Object | None) -> Object:
            return await self._admit(await revise(current), current)

        return transform

    async def _admit(self, new: Object, current: Object | None) -> Object:
        if current is None:
            new = await self.admission.mutate("CREATE", new, None, self.create_options)
        else:
            new = await self.admission.mutate("UPDATE", new, current, self.update_options)
        await offloaded(self.context.large, dedup_owner_references, new, self.request.warnings, after_mutation=True)
        return new

    async def _validate_create(self, new: Object) -> None:
        await self.admission.may_create()
        await self.admission.validate_stored("CREATE", new, None, self.create_options)

    async def _validate_update(self, new: Object, old: Object) -> None:
        await self.admission.validate_stored("UPDATE", new, old, self.update_options)


def _without_managed_fields(transform: Revise) -> Revise:
    async def without(current: Object | None) -> Object:
        new = await transform(current)
        new["metadata"].pop("managedFields", None)
        return new

    return without
