"""POST: a new object, or what a subresource makes of one (upstream: handlers/create.go)."""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.generic.endpoints.admitting import Admitting
from tetrapod.generic.endpoints.decoding import ensure_namespace, read_body
from tetrapod.generic.endpoints.options import decode_write_options
from tetrapod.generic.endpoints.owners import dedup_owner_references
from tetrapod.generic.endpoints.ownership import manager_name
from tetrapod.generic.endpoints.scope import Scope, request_name
from tetrapod.generic.negotiation.accept import Accepted
from tetrapod.generic.negotiation.choosing import body_media_type, negotiate
from tetrapod.generic.registry.context import LARGE, Context
from tetrapod.generic.registry.create import wipe_system_fields
from tetrapod.generic.registry.errors import StoredTooLarge
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.request import Request, Response
from tetrapod.generic.storage.interface import Entry
from tetrapod.machinery.gvk import Object


async def create(scope: Scope, request: Request) -> Response:
    accepted = negotiate(request, scope.offer)
    media_type = body_media_type(request, scope.offer)
    body = await read_body(request)
    options = decode_write_options(request.query_string, "CreateOptions")
    obj = await scope.decoder.decode_any(body, media_type, options.field_validation, request.warnings)
    if request.audit is not None:
        request.audit.request_object(obj, scope.gvr, scope.subresource)
    context = scope.context(request, options.dry_run)
    context.large = len(body) >= LARGE
    if scope.rest is None or not scope.rest.keeps_system_metadata:
        wipe_system_fields(obj)
    ensure_namespace(obj, context.namespace)
    dedup_owner_references(obj, request.warnings)
    if scope.ownership is not None:
        obj = scope.ownership.update(None, obj, manager_name(request, options.field_manager))
    creation = _Creation(scope, request, context, options.to_object("CreateOptions"), accepted)
    return await (creation.store(obj) if scope.rest is None else creation.hand_to_rest(obj))


@dataclass(frozen=True, slots=True)
class _Creation:
    scope: Scope
    request: Request
    context: Context
    options: Object
    accepted: Accepted

    async def store(self, obj: Object) -> Response:
        scope = self.scope
        admitting = Admitting(scope, self.request, self.context, obj["metadata"].get("name") or "")
        obj = await self._admitted(admitting, await scope.representation.conversion.to_stored(obj))

        async def validate(new: Object) -> None:
            scope.forget_empty(new)  # the kind's own validation has told empty from absent
            scope.omit_empty(new)
            await admitting.validate("CREATE", new, None, self.options)

        entry = await self._stored(obj, validate)
        return await scope.representation.entry(entry, self.accepted, 201)

    async def _stored(self, obj: Object, validate: ValidateObject) -> Entry:
        """Managed fields can be large: an object that does not fit with them is stored without."""
        try:
            return await self.scope.store.create(self.context, obj, validate=validate)
        except StoredTooLarge:
            obj["metadata"].pop("managedFields", None)
            return await self.scope.store.create(self.context, obj, validate=validate)

    async def hand_to_rest(self, obj: Object) -> Response:
        """A review, or a subresource, whose name is its parent's."""
        scope, name = self.scope, request_name(self.request)
        assert scope.rest is not None
        admitting = Admitting(scope, self.request, self.context, name or obj["metadata"].get("name") or "")
        obj = await self._admitted(admitting, obj)

        async def validate(new: Object) -> None:
            await admitting.validate("CREATE", new, None, self.options)

        made = await scope.rest.create(self.context, name, obj, validate, self.options)
        if made.get("kind") == "Status" and not made.get("code"):
            made["code"] = 201
        return scope.representation.object(made, self.accepted, 201)

    async def _admitted(self, admitting: Admitting, obj: Object) -> Object:
        obj = await admitting.mutate("CREATE", obj, None, self.options)
        dedup_owner_references(obj, self.request.warnings, after_mutation=True)
        return obj
