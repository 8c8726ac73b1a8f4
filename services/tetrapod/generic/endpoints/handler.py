"""`ResourceHandler`: the endpoints of one resource in one version. Requests need `info` and `user`.

It calls the function of the verb in the request info, as upstream's handler of custom resources does. For a built-in
resource, the router has checked before that its paths and methods exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.endpoints import large_objects
from tetrapod.generic.endpoints.connect import connect, stream
from tetrapod.generic.endpoints.create import create
from tetrapod.generic.endpoints.delete import delete
from tetrapod.generic.endpoints.deletecollection import delete_collection
from tetrapod.generic.endpoints.get import get
from tetrapod.generic.endpoints.list import list_
from tetrapod.generic.endpoints.patch import patch
from tetrapod.generic.endpoints.scope import Scope, request_info
from tetrapod.generic.endpoints.scopes import Scopes
from tetrapod.generic.endpoints.trace_attributes import span_attributes, span_of
from tetrapod.generic.endpoints.update import update
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.metrics.counters import Gauge
from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.status import method_not_supported, not_found

Verb = Callable[[Scope, Request], Coroutine[Any, Any, Response]]

_DEPRECATED: Final = Gauge(
    "apiserver_requested_deprecated_apis",
    "Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and "
    "removed_release.",
    ("group", "version", "resource", "subresource", "removed_release"),
)
_REMOVED: Final = re.compile(r"unavailable in v(\d+\.\d+)\+")

VERBS: Final[Mapping[str, Verb]] = {
    "get": get,
    "list": list_,
    "watch": list_,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}


class _Deprecation:
    """Warns clients of a deprecated version of a kind.

    Args:
        warning: the text of the Warning header; "" if the version is not deprecated, so that `record` does nothing.
    """

    def __init__(self, warning: str) -> None:
        self._warning = warning
        removed = _REMOVED.search(warning)
        self._removed = removed[1] if removed else ""

    def warn(self, request: Request) -> None:
        """Add only the warning to a request; do nothing without a warning."""
        if self._warning:
            request.warnings.append(self._warning)

    def record(self, request: Request, info: RequestInfo) -> None:
        """Add the warning to a request, its audit event and the metric; do nothing without a warning."""
        if self._warning:
            self.warn(request)
            request.annotations["k8s.io/deprecated"] = "true"
            if self._removed:
                request.annotations["k8s.io/removed-release"] = self._removed
            _DEPRECATED.set((info.api_group, info.api_version, info.resource, info.subresource, self._removed), 1)


class ResourceHandler:
    """The handler of one resource in one version, with its subresources.

    The handler adds the Warning header of a deprecated version. It raises StatusError for an unknown subresource (404)
    or an unsupported verb (405).

    Args:
        definition: the resource.
        version: the version of its requests.
        store: the store of the resource; None for one without storage.
        admission: the admission plugins.
        authorizer: authorizes updates that create an object; None allows these to everyone who may update.
    """

    def __init__(
        self,
        definition: ResourceDefinition,
        version: str,
        store: Store | None,
        *,
        admission: AdmissionChain,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.definition = definition
        self.version = version
        self._deprecation = _Deprecation(definition.deprecated.get(version, ""))
        scopes = Scopes(definition, version, store, admission, authorizer)
        self._scope = scopes.resource()
        self._subresources = {
            sub.name: SubresourceHandler(sub, scopes.subresource(sub)) for sub in definition.subresources_in(version)
        }

    def __call__(self, request: Request) -> Coroutine[Any, Any, Response]:
        info = request_info(request)
        request.served = True
        if info.subresource:
            subresource = self._subresources.get(info.subresource)
            if subresource is None:
                if self.definition.custom:
                    self._deprecation.warn(request)
                raise not_found(self.definition.group_resource, request_info(request).name)
            return subresource(request)
        self._deprecation.record(request, info)
        verb = VERBS.get(info.verb)
        # `list_` rejects a watch of a resource that can only be listed, after errors of its options
        if verb is None or ("list" if verb is list_ else info.verb) not in self.definition.verbs:
            raise method_not_supported(self.definition.group_resource, info.verb)
        return _serve(verb, self._scope, request)

    def subresource(self, name: str) -> SubresourceHandler | None:
        """Return the handler of a subresource, or None if this version does not have it."""
        return self._subresources.get(name)


class SubresourceHandler:
    """The handler of one subresource. `connects` is True if it serves raw requests (proxy, exec, log).

    Args:
        declared: the declaration of the subresource.
        scope: its endpoint.
    """

    def __init__(self, declared: Subresource, scope: Scope) -> None:
        self.declared = declared
        self._scope = scope
        own_kind = declared.kind is None or scope.definition.custom  # built-in subresources of another kind do not warn
        warning = scope.definition.deprecated.get(scope.version, "") if own_kind else ""
        self._deprecation = _Deprecation(warning)
        self.connects = scope.rest is not None and type(scope.rest).connect is not Rest.connect

    def __call__(self, request: Request) -> Coroutine[Any, Any, Response]:
        info = request_info(request)
        request.served = True
        self._deprecation.record(request, info)
        if self.connects:
            return (stream if tuple(self.declared.verbs) == ("get",) else connect)(self._scope, request)
        verb = VERBS.get(info.verb)
        if verb is None or info.verb not in self.declared.verbs:
            raise method_not_supported(self._scope.definition.group_resource, info.verb)
        return _serve(verb, self._scope, request)


@traced(span_of, span_attributes)
async def _serve(verb: Verb, scope: Scope, request: Request) -> Response:
    """Call `verb`, the function of the verb, and return its response. Errors of `verb` are passed on.

    If the request is audited, record the object in the response. Objects that `Context.discard` collected are
    deallocated afterwards, also after an error.
    """
    try:
        response = await verb(scope, request)
    except BaseException as error:
        if request.state.get(large_objects.STATE_KEY):
            await large_objects.free(request, error)
        raise
    if request.audit is not None:
        await request.audit.record_response(response)
    if request.state.get(large_objects.STATE_KEY):
        await large_objects.free(request)
    return response
