"""DELETE of one object.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/delete.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.endpoints.admission import RequestAdmission
from tetrapod.generic.endpoints.options import (
    DELETE_OPTIONS,
    UNSAFE_DELETION,
    delete_options_from_body,
    delete_options_from_query,
    drop_disabled_delete_options,
    validate_delete_options,
)
from tetrapod.generic.endpoints.request_body import read_body
from tetrapod.generic.endpoints.scheme import is_kind_of_options, options_error
from tetrapod.generic.endpoints.scope import Scope, request_name
from tetrapod.generic.http.negotiation.accept import CBOR, JSON, PROTOBUF, Accepted
from tetrapod.generic.http.negotiation.media_types import body_media_type, negotiate
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.observability.tracing.spans import current_span
from tetrapod.generic.registry.context import Context
from tetrapod.generic.scheduling.offload import is_large, offloaded
from tetrapod.machinery import protobuf
from tetrapod.machinery.freeing import free_large
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import json as json_serializer
from tetrapod.machinery.serializer import yaml as yaml_serializer
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.serializer.type_meta import recognize, syntax_text
from tetrapod.machinery.status import bad_request
from tetrapod.machinery.types.definitions import schema_for

_AUDIT_ANNOTATION: Final = "apiserver.k8s.io/unsafe-delete-ignore-read-error"


async def delete(scope: Scope, request: Request) -> Response:
    """Serve a DELETE of an object.

    If the object was removed, the response is a Status, or the object for kinds that return deleted objects. If the
    object still waits for finalizers or a grace period, the response is the object. Its status code is then 202 if
    `orphanDependents` is false, else 200.

    Raises:
        StatusError: the object does not exist (404), a precondition does not hold (409), or admission rejects the
            request.
    """
    name = request_name(request)
    accepted = negotiate(request, scope.offer)
    options = await read_delete_options(scope, request)
    drop_disabled_delete_options(options)
    validate_delete_options(options)
    context = scope.context(request, bool(options.get("dryRun")))
    admission = RequestAdmission(scope, request, context, name)
    if options.get(UNSAFE_DELETION):
        return await _delete_unreadable(scope, request, admission, context, accepted)

    async def validate(old: Object) -> None:  # called when the store has written its grace period into the options
        await admission.delete(old, {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **options})

    span = current_span()
    span.event("About to delete object from database")
    entry, removed = await scope.store.delete(context, name, options, validate)
    span.event("Object deleted from database")
    status = 202 if not removed and options.get("orphanDependents") is False else 200
    if removed and not scope.definition.strategy.returns_deleted_object(context.version):
        return scope.representation.object(_success(scope, name, entry.uid), accepted)
    return await scope.representation.entry(entry, accepted, status)


async def _delete_unreadable(
    scope: Scope, request: Request, admission: RequestAdmission, context: Context, accepted: Accepted
) -> Response:
    """Delete an object that cannot be read from the store, if the user has the special permission for that.

    Args:
        scope: the endpoint.
        request: the request.
        admission: authorizes the deletion.
        context: the registry context of the request.
        accepted: the negotiated media type.

    Raises:
        StatusError: 403, the user may not; 404, the object does not exist; 409, it can be read.
    """
    name = request_name(request)
    request.annotations.setdefault(_AUDIT_ANNOTATION, "")
    await admission.may_delete_unreadable()
    await scope.store.delete_unreadable(context, name)
    details: Object = {"name": name, "kind": scope.kind.kind}
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return scope.representation.object({**status, "details": details, "code": 200}, accepted)


def _success(scope: Scope, name: str, uid: str) -> Object:
    details: Object = {"name": name}
    if scope.definition.group:
        details["group"] = scope.definition.group
    details["kind"] = scope.definition.resource
    if uid:
        details["uid"] = uid
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _decode_options(body: bytes, media_type: str) -> Object:
    """Return the DeleteOptions in a body, without unknown fields.

    Raises:
        StatusError: 400, the body cannot be decoded, or has a value of a wrong type.
    """
    try:
        if media_type == PROTOBUF:
            decoded = protobuf.decode(body, DELETE_OPTIONS)
        elif media_type == CBOR:
            decoded = _decode_cbor(body)
        else:
            decoded = (json_serializer if media_type == JSON else yaml_serializer).decode(body).obj
    except protobuf.MessageError as error:
        known = is_kind_of_options(error.kind)
        raise bad_request(str(error) if known else options_error(error.kind)) from None
    except DecodeError as error:
        raise bad_request(syntax_text(error) if media_type == JSON else str(error)) from None
    decoded_values = [decoded]
    try:
        return delete_options_from_body(recognize(decoded)[0], body)
    except DecodeError as error:
        raise bad_request(str(error)) from None
    finally:
        del decoded
        free_large(decoded_values)  # the unknown fields of a large body


def _decode_cbor(body: bytes) -> Object:
    """Return the object in a CBOR body.

    Raises:
        DecodeError: the body is not a CBOR map.
        StatusError: 400, a value has a wrong type, or the map has duplicate members, invalid UTF-8 or the like.
    """
    from tetrapod.generic.endpoints.cbor_bodies import UnfitBodyError, decode_object

    def structure_of(gvk: GroupVersionKind) -> SchemaNode | None:
        return schema_for(DELETE_OPTIONS) if gvk.kind == DELETE_OPTIONS.kind else None

    try:
        obj: Object = decode_object(body, DELETE_OPTIONS, structure_of).obj
    except UnfitBodyError as error:
        raise bad_request(str(error)) from None
    return obj


async def read_delete_options(scope: Scope, request: Request) -> Object:
    """Return the DeleteOptions of the body, or of the query if the body is empty.

    They are decoded, in a thread if the body is large, but not validated; an option that is not set is absent.

    Raises:
        StatusError: 400, the body or the query cannot be decoded; 413, the body is too large; 415, its media type is
            not supported.
    """
    body = await read_body(request)
    if not body:
        return delete_options_from_query(request.query())
    large = is_large(body)
    options = await offloaded(large, _decode_options, body, body_media_type(request))
    span = current_span()
    span.event("Decoded delete options")
    if request.audit is not None:
        # as in upstream's audit events
        audited = {**options, "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"}
        await offloaded(large, request.audit.request_object, audited, scope.gvr, scope.subresource, large)
    span.event("Recorded the audit event")
    return options
