"""POST: creates an object, or calls a subresource's `create`.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go
"""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.generic.endpoints.admission import RequestAdmission
from tetrapod.generic.endpoints.field_management import manager_name
from tetrapod.generic.endpoints.large_objects import set_large
from tetrapod.generic.endpoints.options import decode_write_options
from tetrapod.generic.endpoints.owner_references import dedup_owner_references
from tetrapod.generic.endpoints.path_identity import ensure_namespace
from tetrapod.generic.endpoints.request_body import read_body
from tetrapod.generic.endpoints.scope import Scope, request_name
from tetrapod.generic.endpoints.trace_attributes import STORING
from tetrapod.generic.http.negotiation.accept import Accepted
from tetrapod.generic.http.negotiation.media_types import body_media_type, negotiate
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.observability.tracing.spans import current_span
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.create import wipe_system_fields
from tetrapod.generic.registry.errors import StoredTooLarge
from tetrapod.generic.registry.hooks import ValidateObject
from tetrapod.generic.scheduling.offload import is_large, offloaded
from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.gvk import Object


async def create(scope: Scope, request: Request) -> Response:
    """Serve a POST: create an object, or call the `create` of a handler without storage.

    Raises:
        StatusError: the request is malformed, rejected by admission or invalid, or the name exists.
    """
    accepted = negotiate(request, scope.offer)
    media_type = body_media_type(request, scope.offer)
    body = await read_body(request)
    options = decode_write_options(request.query(), "CreateOptions")
    obj = await scope.decoder.decode_any(body, media_type, options.field_validation, request.warnings)
    large = is_large(body)
    if request.audit is not None:
        await offloaded(large, request.audit.request_object, obj, scope.gvr, scope.subresource, large)
    context = scope.context(request, options.dry_run)
    set_large(context, request, large=large)
    context.discard(obj)
    context.mismatch = scope.decoder.expect_kind(obj)
    if scope.rest is None or not scope.rest.keeps_system_metadata:
        wipe_system_fields(obj)
    ensure_namespace(obj, context.namespace)
    obj = await offloaded(
        context.large, _set_managed_fields, scope, obj, request, manager_name(request, options.field_manager)
    )
    context.discard(obj)
    creation = _Creation(scope, request, context, options.to_object("CreateOptions"), accepted)
    return await (creation.store(obj) if scope.rest is None else creation.hand_to_rest(obj))


def _set_managed_fields(scope: Scope, obj: Object, request: Request, manager: str) -> Object:
    """Return the object with managed fields. Duplicate owner references are removed from `obj`, with a warning.

    Args:
        manager: the name of the field manager.
    """
    dedup_owner_references(obj, request.warnings)
    return obj if scope.field_manager is None else scope.field_manager.update(None, obj, manager)


@dataclass(frozen=True, slots=True)
class _Creation:
    """One create request after decoding.

    Attributes:
        scope: the endpoint.
        request: the HTTP request.
        context: its registry context.
        options: the CreateOptions object for admission.
        accepted: the media type and the form of the response.
    """

    scope: Scope
    request: Request
    context: Context
    options: Object
    accepted: Accepted

    async def store(self, obj: Object) -> Response:
        """Run admission for the object, store it, and return the response.

        Raises:
            StatusError: the object is rejected by admission (403), invalid (422) or too large, or its name exists
                (409).
        """
        scope = self.scope
        admission = RequestAdmission(scope, self.request, self.context, obj["metadata"].get("name") or "")
        obj = await self._admit(admission, await scope.representation.conversion.to_stored(obj))

        async def validate(new: Object) -> None:
            await admission.validate_stored("CREATE", new, None, self.options)

        entry = await self._store_object(obj, validate)
        return await scope.representation.entry(entry, self.accepted, 201)

    async def _store_object(self, obj: Object, validate: ValidateObject) -> Entry:
        """Store the object, with `validate` (validating admission) after the strategy's validation.

        If it exceeds the store's size limit, try again without managed fields, which can be large.

        Raises:
            StatusError: the object is invalid (422), its name exists (409), or it is too large even then (500).
        """
        before, after = STORING
        span = current_span()
        span.event(before)
        try:
            entry = await self.scope.store.create(self.context, obj, validate=validate)
        except StoredTooLarge:
            obj["metadata"].pop("managedFields", None)
            entry = await self.scope.store.create(self.context, obj, validate=validate)
        span.event(after)
        return entry

    async def hand_to_rest(self, obj: Object) -> Response:
        """Run admission for the object, pass it to the handler without storage, and return the response.

        The handler is that of a review or of a subresource; for a subresource, the name in the path is that of its
        parent.

        Raises:
            StatusError: the rejection of a plugin or of the handler.
        """
        scope, name = self.scope, request_name(self.request)
        assert scope.rest is not None
        admission = RequestAdmission(scope, self.request, self.context, name or obj["metadata"].get("name") or "")
        obj = await self._admit(admission, obj)

        async def validate(new: Object) -> None:
            await admission.validate("CREATE", new, None, self.options)

        result = await scope.rest.create(self.context, name, obj, validate, self.options)
        if result.get("kind") == "Status" and not result.get("code"):
            result["code"] = 201
        return await offloaded(self.context.large, scope.representation.object, result, self.accepted, 201)

    async def _admit(self, admission: RequestAdmission, obj: Object) -> Object:
        obj = await admission.mutate("CREATE", obj, None, self.options)
        await offloaded(self.context.large, dedup_owner_references, obj, self.request.warnings, after_mutation=True)
        return obj
