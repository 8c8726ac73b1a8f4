"""DELETE of a collection.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/delete.go, DeleteCollection
"""

from __future__ import annotations

from tetrapod.generic.endpoints.admission import RequestAdmission
from tetrapod.generic.endpoints.delete import read_delete_options
from tetrapod.generic.endpoints.list import list_query, selection_of, within_shard
from tetrapod.generic.endpoints.options import (
    decode_list_options,
    drop_disabled_delete_options,
    validate_delete_options,
)
from tetrapod.generic.endpoints.scope import Scope, request_info
from tetrapod.generic.http.negotiation.media_types import negotiate
from tetrapod.generic.http.request import Request, Response
from tetrapod.machinery.gvk import Object


async def delete_collection(scope: Scope, request: Request) -> Response:
    """Serve a DELETE of a collection: the response is the list of the objects from before the deletion.

    Raises:
        StatusError: the request is malformed, or a deletion is rejected. Objects deleted before remain deleted.
    """
    accepted = negotiate(request, scope.offer)
    list_options = decode_list_options(request.query().values)
    selection = await selection_of(scope, list_options, request_info(request).namespace, "")
    options = await read_delete_options(scope, request)
    drop_disabled_delete_options(options)
    validate_delete_options(options, collection=True)
    selection = await within_shard(selection, list_options)
    context = scope.context(request, bool(options.get("dryRun")))
    admission = RequestAdmission(scope, request, context, "")
    admission_options = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **options}

    async def validate(old: Object) -> None:
        await admission.delete(old, admission_options)

    page = await scope.store.delete_collection(context, options, list_query(list_options, selection), validate)
    return await scope.representation.page(page, accepted, selection.shard)
