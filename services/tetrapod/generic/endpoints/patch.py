"""PATCH: JSON, merge and strategic merge patches, and server-side apply.

A patch is an update whose new object is computed from the stored one for each attempt. A concurrent write is
therefore no conflict unless the patch contains a resourceVersion. The patch types are implemented in `patch_types.py`
and `apply.py`.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tetrapod.generic.endpoints.apply import ApplyPatching, CborApplyPatching
from tetrapod.generic.endpoints.field_management import manager_name
from tetrapod.generic.endpoints.large_objects import set_large
from tetrapod.generic.endpoints.options import APPLY, APPLY_CBOR, WriteOptions, decode_write_options
from tetrapod.generic.endpoints.patch_types import JSONPatching, MergePatching, PatchMechanism, StrategicPatching
from tetrapod.generic.endpoints.path_identity import check_name, ensure_namespace
from tetrapod.generic.endpoints.quoted_objects import sort_touched_field
from tetrapod.generic.endpoints.request_body import read_body
from tetrapod.generic.endpoints.scope import Scope, request_name
from tetrapod.generic.endpoints.update import Writing
from tetrapod.generic.http.negotiation.accept import serves_cbor
from tetrapod.generic.http.negotiation.media_types import negotiate, unsupported_media_type
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.observability.tracing.spans import current_span
from tetrapod.generic.scheduling.offload import is_large, offloaded
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.raw_extensions import add_go_texts, fields_at, forget_texts, put_fields, raw_paths
from tetrapod.machinery.status import bad_request, conflict

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"

PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY)
"""Patch types of built-in resources, in the order of error texts."""
CUSTOM_PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, APPLY)


def patch_types(*, custom: bool = False) -> Sequence[str]:
    """Return the media types of the patches that a resource supports.

    Custom resources have no strategic merge patch.
    """
    types = CUSTOM_PATCH_TYPES if custom else PATCH_TYPES
    return (*types, APPLY_CBOR) if serves_cbor() else types


async def patch(scope: Scope, request: Request) -> Response:
    """Serve a PATCH of any type, and return the new object with 200, or with 201 if server-side apply created it.

    Raises:
        StatusError: 415 for an unsupported patch type; otherwise as for an update.
    """
    patch_type = request.header(b"content-type").split(";", 1)[0]
    supported = patch_types(custom=scope.definition.custom)
    if patch_type not in supported:
        raise unsupported_media_type(supported)
    name = request_name(request)
    if not name:
        raise bad_request("name must be provided")
    accepted = negotiate(request, scope.offer)
    body = await read_body(request)
    applies = patch_type in (APPLY, APPLY_CBOR)
    options = decode_write_options(request.query(), "PatchOptions", apply=applies)
    context = scope.context(request, options.dry_run)
    set_large(context, request, large=is_large(body))
    mechanism = await offloaded(context.large, _mechanism, scope, request, patch_type, body, options)
    context.large = context.large or mechanism.may_grow
    context.discard(mechanism.document)
    if request.audit is not None:
        patch = mechanism.config if isinstance(mechanism, ApplyPatching) else body
        await offloaded(context.large, request.audit.request_patch, patch)
    span = current_span()
    span.event("Recorded the audit event")

    async def revise(current: Object | None) -> Object:
        span.event("About to apply patch")

        def revised() -> Object:
            return _revised(scope, mechanism, name, current)

        if scope.field_manager is None:
            new = await offloaded(context.large, revised)
        else:
            new = await scope.field_manager.run(context.large, revised)
        context.unchanged = mechanism.unchanged
        _check_uid(scope, name, new, current)
        ensure_namespace(new, context.namespace)
        check_name(new, name)
        span.event("About to check admission control")
        return new

    update_options = options.to_object("UpdateOptions")  # plugins get an UPDATE operation
    create_options = options.to_object("CreateOptions")
    writing = Writing(
        scope, request, context, name, update_options, create_options, storing=("", "Object stored in database")
    )
    first = len(request.warnings)
    try:
        return await writing.answer(revise, accepted, force_create=applies and not scope.subresource, applies=applies)
    finally:
        # The decoder's warnings precede all others, also if the request is rejected.
        request.warnings[first:first] = mechanism.warnings


def _revised(scope: Scope, mechanism: PatchMechanism, name: str, current: Object | None) -> Object:
    """Return the patched object.

    JSON patches and merge patches keep the order of members in RawExtension fields, but sort the objects that they
    traverse. Other patches sort all members, as Go encodes maps.

    Args:
        scope: the resource.
        mechanism: applies the patch.
        name: the name of the object.
        current: the stored object, which may be modified; None or an object without uid if it is absent.
    """
    paths = raw_paths(scope.definition.group, scope.definition.kind)
    texts: list[Any] = []
    if current is not None:
        texts = fields_at(current, paths)
        forget_texts(current, paths, compact=mechanism.patches_text)
    exists = current is not None and current["metadata"].get("uid")
    new = mechanism.revise(current) if current is not None and exists else mechanism.create(name)
    if exists and mechanism.unchanged:
        put_fields(new, paths, texts)
        return new
    if paths:
        touched = mechanism.touched(current)
        for path in paths:
            sort_touched_field(new, path, touched)
        add_go_texts(new, paths, sent=mechanism.patches_text)
    return new


def _mechanism(scope: Scope, request: Request, patch_type: str, body: bytes, options: WriteOptions) -> PatchMechanism:
    manager = manager_name(request, options.field_manager)
    match patch_type:
        case "application/json-patch+json":
            return JSONPatching(scope, body, options.field_validation, manager)
        case "application/merge-patch+json":
            return MergePatching(scope, body, options.field_validation, manager)
        case "application/strategic-merge-patch+json":
            return StrategicPatching(scope, body, options.field_validation, manager)
        case "application/apply-patch+cbor":
            return CborApplyPatching(scope, body, options, manager)
    return ApplyPatching(scope, body, options, manager)


def _check_uid(scope: Scope, name: str, new: Object, current: Object | None) -> None:
    if current is None and (uid := new["metadata"].get("uid")):
        text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise conflict(scope.definition.group_resource, name, text)
