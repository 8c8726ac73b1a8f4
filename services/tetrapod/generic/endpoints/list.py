"""GET of a collection, which is a watch where `?watch` says so (upstream: ListResource of handlers/get.go)."""

from __future__ import annotations

from tetrapod.generic.endpoints.options import ListOptions, decode_list_options, validate_list_options
from tetrapod.generic.endpoints.scope import Scope, request_info, request_name
from tetrapod.generic.endpoints.watch import watch
from tetrapod.generic.negotiation.choosing import negotiate
from tetrapod.generic.registry.predicate import Selection, parse_fields, select
from tetrapod.generic.request import Request, Response
from tetrapod.generic.storage.interface import ListQuery
from tetrapod.machinery import fields, labels
from tetrapod.machinery.requestinfo import query_values
from tetrapod.machinery.status import bad_request


async def list_(scope: Scope, request: Request) -> Response:
    info = request_info(request)
    accepted = negotiate(request, scope.offer)
    options = decode_list_options(query_values(request.query_string))
    check_selectors(options)
    validate_list_options(options)
    selection = selection_of(scope, options, info.namespace, request_name(request))
    if options.watch or info.verb == "watch":  # what a path forces to be a watch (/api/v1/watch/…) has the options of a list
        return await watch(scope, request, options, selection, accepted)
    context = scope.context(request)
    if scope.rest is not None:
        return scope.representation.objects(await scope.rest.list(context, options), accepted)
    page = await scope.store.list(context, list_query(options, selection))
    return await scope.representation.page(page, accepted)


def check_selectors(options: ListOptions) -> None:
    """That they can be read is a matter of decoding, so it comes before validation.

    Raises:
        StatusError: 400.
    """
    if not options.label_selector and not options.field_selector:
        return
    try:
        labels.parse(options.label_selector)
        fields.parse(options.field_selector)
    except ValueError as error:
        raise bad_request(str(error)) from None


def selection_of(scope: Scope, options: ListOptions, namespace: str, name: str) -> Selection:
    """What the selectors, the namespace and (for watches of one object) the name in the path ask for.

    Raises:
        StatusError: 400.
    """
    definition = scope.definition
    field_selector = options.field_selector
    if name:
        wanted = parse_fields(definition, field_selector, scope.version)
        if not wanted.empty and wanted.requires_exact_match("metadata.name") != name:
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        if wanted.empty:
            field_selector = f"metadata.name={fields.escape(name)}"
    return select(definition, namespace if definition.namespaced else "", options.label_selector, field_selector, scope.version)


def list_query(options: ListOptions, selection: Selection) -> ListQuery:
    return ListQuery(
        prefix=selection.prefix,
        predicate=selection.predicate,
        limit=max(options.limit, 0),
        continue_token=options.continue_token,
        resource_version=options.resource_version,
        match=options.resource_version_match,
        single=selection.single,
    )
