"""`GroupVersionRouter`: routes to the built-in resources of one group-version by name, and rejects unknown paths.

A path that belongs to no resource is a 404 Status without details, an unsupported method a 405. Both are checked before
the Accept header. It imitates go-restful's routing over the routes of installer.go.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/installer.go
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final

from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.endpoints.handler import ResourceHandler, SubresourceHandler
from tetrapod.generic.endpoints.patch import patch_types
from tetrapod.generic.http.negotiation.accept import MEDIA_TYPES, stream_types
from tetrapod.generic.http.negotiation.media_types import check_route_accept, check_route_content_type
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.store import Store
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.status import method_not_allowed, unknown_path

_NAMED: Final = {"get": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_COLLECTION: Final = {"list": "GET", "watch": "GET", "create": "POST", "deletecollection": "DELETE"}
_SUBRESOURCE: Final = {**_NAMED, "create": "POST"}
_EVERYTHING: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_PROXIED: Final = frozenset({"create", "delete", "get", "patch", "update"})


class Route:
    """The methods and the handler of one path pattern.

    It raises StatusError for other methods (405) or media types (406, 415).

    Args:
        handler: serves the requests.
        methods: the allowed HTTP methods.
        streams: whether a GET may be a watch, which offers more media types.
        connects: whether the handler serves raw requests (proxy, exec), whose media types are not checked.
    """

    __slots__ = ("connects", "handler", "methods", "patch_types", "produced")

    def __init__(
        self, handler: Handler, methods: frozenset[str], *, streams: bool = False, connects: bool = False
    ) -> None:
        self.handler = handler
        self.methods = methods
        self.produced: Sequence[str] = stream_types() if streams else MEDIA_TYPES
        self.patch_types = patch_types()
        self.connects = connects

    def __call__(self, request: Request) -> Coroutine[Any, Any, Response]:
        method = request.method
        if method not in self.methods:
            raise method_not_allowed()
        if not self.connects:
            if method == "PATCH":
                check_route_content_type(request, self.patch_types)
            check_route_accept(request, self.produced if method == "GET" else MEDIA_TYPES)
        return self.handler(request)


class ResourceRoutes:
    """The routes of one resource and its subresources.

    Args:
        definition: the resource, whose verbs decide which methods are allowed.
        handler: serves the requests for the resource, and provides the handlers of its subresources.
    """

    def __init__(self, definition: ResourceDefinition, handler: ResourceHandler) -> None:
        self.namespaced = definition.namespaced
        verbs = definition.verbs
        collection = frozenset(_COLLECTION[v] for v in verbs if v in _COLLECTION)
        named = frozenset(_NAMED[v] for v in verbs if v in _NAMED)
        self._collection = Route(handler, collection, streams="list" in verbs) if collection else None
        self._named = Route(handler, named) if named else None
        # A namespaced resource can only be listed and watched across all namespaces.
        everywhere = frozenset({"GET"}) if "list" in verbs else frozenset()
        self._everywhere = Route(handler, everywhere, streams="list" in verbs) if everywhere else None
        watches = frozenset({"GET"}) if "watch" in verbs else frozenset()
        self._watched = Route(handler, watches, streams=True) if watches else None
        self._subresources = {
            sub.name: _subresource_route(subhandler)
            for sub in definition.subresources
            if (subhandler := handler.subresource(sub.name)) is not None
        }

    def find(self, info: RequestInfo) -> Route | None:
        """Return the route of a path, or None if the resource has none for it. The method is checked by the route."""
        if info.verb == "proxy":  # `/api/v1/proxy/...` no longer exists, but is still authorized as proxy
            return None
        depth = len(info.parts)
        in_namespace = info.namespaced
        if in_namespace and not self.namespaced:
            return None
        if depth > 1 and self.namespaced and not in_namespace:
            return None
        if info.verb == "watch" and _is_watch_path(info):
            return self._watched if depth < 3 else None
        if depth == 1:
            return self._everywhere if self.namespaced and not in_namespace else self._collection
        if depth == 2:
            return self._named
        route = self._subresources.get(info.parts[2])
        if route is None or (depth > 3 and not (route.connects and route.methods >= _EVERYTHING)):
            return None
        return route


def _subresource_route(handler: SubresourceHandler) -> Route:
    verbs = handler.declared.verbs
    if handler.connects and set(verbs) >= _PROXIED:
        return Route(handler, _EVERYTHING, connects=True)
    return Route(handler, frozenset(_SUBRESOURCE[v] for v in verbs if v in _SUBRESOURCE), connects=handler.connects)


def _is_watch_path(info: RequestInfo) -> bool:
    """Return whether the path is a legacy watch path, `/api/v1/watch/…` or `/apis/GROUP/VERSION/watch/…`."""
    parts = info.path.split("/", 5)
    return len(parts) > 3 and parts[3 if info.api_prefix == "api" else 4 if len(parts) > 4 else 3] == "watch"


class GroupVersionRouter:
    """The router of one group-version.

    Args:
        group: the API group; "" for the core group.
        version: the version.
        admission: the admission plugins.
        authorizer: for updates that create objects; None allows these to everyone who may update.
    """

    def __init__(
        self, group: str, version: str, admission: AdmissionChain, authorizer: Authorizer | None = None
    ) -> None:
        self.group, self.version = group, version
        self._admission, self._authorizer = admission, authorizer
        self._resources: dict[str, ResourceRoutes] = {}

    def install(self, definition: ResourceDefinition, store: Store | None) -> None:
        """Add the routes of a resource; `store` is None for a resource without storage."""
        handler = ResourceHandler(
            definition, self.version, store, admission=self._admission, authorizer=self._authorizer
        )
        self._resources[definition.resource] = ResourceRoutes(definition, handler)

    def handle(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Serve a request, which needs a request info. Raises StatusError, a 404 for an unknown path."""
        info = request.info
        if info is None:
            raise ValueError("a router needs the request info")
        resource = self._resources.get(info.resource)
        route = resource.find(info) if resource is not None else None
        if route is None:
            raise unknown_path()
        return route(request)
