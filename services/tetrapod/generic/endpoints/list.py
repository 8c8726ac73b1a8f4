"""GET of a collection, or a watch if the query has `watch`.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go, ListResource
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.endpoints.options import ListOptions, decode_list_options, validate_list_options
from tetrapod.generic.endpoints.scope import Scope, request_info, request_name
from tetrapod.generic.endpoints.watch import watch
from tetrapod.generic.http.negotiation.media_types import negotiate
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.registry.predicate import Selection, parse_fields, select
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.machinery import field_selectors, labels, sharding
from tetrapod.machinery.sharding import ShardSelector, ShardSelectorError
from tetrapod.machinery.status import StatusError, bad_request


async def list_(scope: Scope, request: Request) -> Response:
    """Serve a GET of a collection: a list, or a watch if the query or the path requests one.

    Raises:
        StatusError: the options are invalid (400, 422), the resource version is not available (410, 504), or the
            response type is not acceptable (406).
    """
    info = request_info(request)
    accepted = negotiate(request, scope.offer)
    options = decode_list_options(request.query().values)
    selection = await selection_of(scope, options, info.namespace, request_name(request))
    if scope.rest is None:
        selection = await within_shard(selection, options)
    if options.watch or info.verb == "watch":  # legacy watch paths (/api/v1/watch/…) have list options without `watch`
        return await watch(scope, request, options, selection, accepted)
    context = scope.context(request)
    if scope.rest is not None:
        return scope.representation.objects(await scope.rest.list(context, options), accepted)
    page = await scope.store.list(context, list_query(options, selection))
    return await scope.representation.page(page, accepted, selection.shard)


async def selection_of(scope: Scope, options: ListOptions, namespace: str, name: str) -> Selection:
    """Validate list options, and return the keys and the predicate that they select.

    Selectors of more than 4,096 characters together are parsed in a thread.

    Args:
        scope: the endpoint.
        options: the list options.
        namespace: the namespace in the path; "" for all.
        name: the name in the path of a legacy watch of one object (`/api/v1/watch/…`); "" otherwise.

    Raises:
        StatusError: 400, a selector is malformed, not supported or for another name; 422, options contradict each
            other.
    """
    if len(options.label_selector) + len(options.field_selector) > _LARGE:
        return await asyncio.to_thread(_selection, scope, options, namespace, name)
    return _selection(scope, options, namespace, name)


_LARGE: Final = 4096


async def within_shard(selection: Selection, options: ListOptions) -> Selection:
    """Return the selection of those objects that the shard selector of the options selects too.

    The gate `ShardedListAndWatch` decides whether the selector is used or ignored.

    Args:
        selection: the objects that the other selectors select.
        options: the list options.

    Raises:
        StatusError: 500, the shard selector is invalid.
    """
    if not options.shard_selector or not feature_gates.enabled("ShardedListAndWatch"):
        return selection
    return selection.within(await asyncio.to_thread(_parse_shard, options.shard_selector))


def _parse_shard(text: str) -> ShardSelector:
    try:
        return sharding.parse(text)
    except ShardSelectorError as error:
        raise StatusError(500, "", f"invalid shard selector: {error}") from None


def _selection(scope: Scope, options: ListOptions, namespace: str, name: str) -> Selection:
    _check_selectors(options)
    validate_list_options(options)
    return _select(scope, options, namespace, name)


def _check_selectors(options: ListOptions) -> None:
    """Check the syntax of the selectors. It precedes all other validation, because upstream parses them while decoding.

    Raises:
        StatusError: 400, a selector is malformed.
    """
    if not options.label_selector and not options.field_selector:
        return
    try:
        labels.parse(options.label_selector)
        field_selectors.parse(options.field_selector)
    except ValueError as error:
        raise bad_request(str(error)) from None


def _select(scope: Scope, options: ListOptions, namespace: str, name: str) -> Selection:
    definition = scope.definition
    field_selector = options.field_selector
    if name:
        requested_fields = parse_fields(definition, field_selector, scope.version)
        if not requested_fields.empty and requested_fields.requires_exact_match("metadata.name") != name:
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        if requested_fields.empty:
            field_selector = f"metadata.name={field_selectors.escape(name)}"
    return select(
        definition, namespace if definition.namespaced else "", options.label_selector, field_selector, scope.version
    )


def list_query(options: ListOptions, selection: Selection) -> ListQuery:
    """Return the storage query for list options.

    Args:
        options: the validated list options.
        selection: the keys and the predicate that the options select (see `selection_of`).
    """
    return ListQuery(
        prefix=selection.prefix,
        predicate=selection.predicate,
        limit=max(options.limit, 0),
        continue_token=options.continue_token,
        resource_version=options.resource_version,
        match=options.resource_version_match,
        single=selection.single,
    )
