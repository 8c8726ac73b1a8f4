"""`GenericAPIServer`: combines resources, non-resource endpoints, admission, storage and lifecycle into one `Handler`.

Aggregator, core, extensions and auth are each an instance with its own resources, and so is an aggregated API server.
Its method `director` serves authenticated and authorized requests; `build_handler_chain` (filters/chain.py) wraps it
for a listener.
Upstream: k8s.io/apiserver/pkg/server/genericapiserver.go; handler.go, director
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.discovery.handlers import DiscoveryHandlers, DiscoverySource
from tetrapod.generic.discovery.source import DefinitionSource
from tetrapod.generic.endpoints.router import GroupVersionRouter
from tetrapod.generic.endpoints.stored_defaults import DefaultsOfKind
from tetrapod.generic.http.headers import JSON_TYPE
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.observability.debugging import profiles, verbosity, zpages
from tetrapod.generic.openapi.source import BuiltinSource
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.raw_text_storage import RawTextStorage
from tetrapod.generic.registry.store import Store
from tetrapod.generic.server.health import Health
from tetrapod.generic.server.resource_config import EVERYTHING, ResourceConfig
from tetrapod.generic.server.routes import Routes, health_handler, metrics, slis, unknown_path_response, version
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery import status
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.raw_extensions import raw_paths


class GenericAPIServer:
    """An API server without a listener: resources and non-resource endpoints, and the handler that routes to them.

    Args:
        name: the component in metrics and logs.
        storage: creates the storage of each resource.
        admission: the admission plugins.
        lifecycle: the hooks and health checks.
        authorizer: the authorizer for checks inside endpoints; None to allow these.
        fallback: serves resource and discovery paths of groups that are not installed; None to respond with 404.
        profiling: whether to serve /debug/pprof and /debug/flags.
        resource_config: the built-in resources to serve.

    Attributes:
        health: the endpoints of the health checks.
        routes: the non-resource endpoints.
        source: the resources that are installed and served, for discovery.
        stores: the storage of each installed resource, also of those that are not served.
        documents: functions that build the OpenAPI documents of non-resource endpoints, by name.
        listed: functions that return additional paths for `/`.
        flags: the command-line flags, for /flagz.
    """

    def __init__(
        self,
        name: str,
        storage: StorageFactory,
        admission: AdmissionChain,
        lifecycle: Lifecycle,
        *,
        authorizer: Authorizer | None = None,
        fallback: Handler | None = None,
        profiling: bool = True,
        resource_config: ResourceConfig = EVERYTHING,
    ) -> None:
        self.name = name
        self.storage = storage
        self.admission = admission
        self.lifecycle = lifecycle
        self.authorizer = authorizer
        self.health = Health(lifecycle)
        self.routes = Routes()
        self.source = DefinitionSource()
        self.stores: dict[GroupResource, Store] = {}
        self.documents: dict[str, Callable[[], Object]] = {"version": _version_document}
        self.listed: list[Callable[[], Iterable[str]]] = []
        self.flags: Mapping[str, str] = {}
        self.fallback = fallback
        self.resource_config = resource_config
        self._profiling = profiling
        self._routers: dict[tuple[str, str], GroupVersionRouter] = {}
        self._groups: set[str] = set()
        self._discovery = DiscoveryHandlers(self.source, self._groups.__contains__)
        self._install_routes()

    def _install_routes(self) -> None:
        check = health_handler(self.health)
        for endpoint in ("/healthz", "/livez", "/readyz"):
            self.routes.add(endpoint, check)
            self.routes.add_prefix(endpoint + "/", check)
        self.routes.add_rest("/version", version)
        self.routes.add("/metrics", metrics)
        self.routes.add("/metrics/slis", slis)
        if feature_gates.enabled("ComponentStatusz"):
            self.routes.add("/statusz", zpages.statusz(self.paths))
        if feature_gates.enabled("ComponentFlagz"):
            self.routes.add("/flagz", zpages.flagz(lambda: self.flags))
        if self._profiling:
            self.routes.add("/debug/pprof", profiles.redirect, listed=False)
            self.routes.add_prefix(profiles.PREFIX, profiles.handle)
            self.routes.add("/debug/flags", verbosity.index, listed=False)
            self.routes.add("/debug/flags/v", verbosity.verbosity, listed=False)
            self.routes.add_prefix("/debug/flags/", verbosity.index)
        self.routes.add("/", self._index)
        self.routes.add("/index.html", self._index, listed=False)

    def install(self, definitions: Iterable[ResourceDefinition]) -> None:
        """Add resources, which are then served in all their versions that `resource_config` enables.

        Their storage is created at once, even if they are not served, because other parts of the server read it.
        """
        for declared in definitions:
            definition = self._without_disabled(declared)
            store = self._store(definition)
            if not definition.served_versions:
                continue
            for served in definition.served_versions:
                key = (definition.group, served)
                router = self._routers.get(key)
                if router is None:
                    router = self._routers[key] = GroupVersionRouter(
                        definition.group, served, self.admission, self.authorizer
                    )
                router.install(definition, store)
            self._groups.add(definition.group)
            self.source.install(definition)

    def _without_disabled(self, definition: ResourceDefinition) -> ResourceDefinition:
        group, resource = definition.group, definition.resource
        disabled = frozenset(v for v in definition.versions if not self.resource_config.enabled(group, v, resource))
        return replace(definition, disabled_versions=disabled) if disabled else definition

    def _store(self, definition: ResourceDefinition) -> Store | None:
        if definition.rest is not None:
            return None
        config = StorageConfig(
            prefix=definition.storage_prefix,
            api_version=definition.gvk(definition.storage_version).api_version,
            kind=definition.kind,
            namespaced=definition.namespaced,
            from_store=definition.from_former,
            defaults=None if definition.custom else DefaultsOfKind(definition),
        )
        storage = self.storage.resource(config)
        if paths := () if definition.custom else raw_paths(definition.group, definition.kind):
            storage = RawTextStorage(storage, paths)
        store = definition.store(definition, storage)
        self.stores[definition.group_resource] = store
        return store

    def statistics(self, group: str, resource: str) -> tuple[int, int] | None:
        """Return the number of objects of a resource and their average size in bytes, for flow control.

        Returns:
            None if the resource is not installed here or not stored, or if its watch cache is not filled yet.
        """
        store = self.stores.get(GroupResource(group, resource))
        return store.storage.statistics() if store is not None else None

    def discover(self, source: DiscoverySource) -> None:
        """Serve discovery from `source` instead of the installed resources."""
        self._discovery = DiscoveryHandlers(source, self._groups.__contains__)

    def serves(self, group: str, version_: str) -> bool:
        """Return whether a resource of this group-version is installed."""
        return (group, version_) in self._routers

    def director(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Route a request to its endpoint, to `fallback`, or to a plain-text 404.

        It returns the coroutine of the endpoint: one of its own would be resumed in vain whenever the request has
        waited for something.

        Raises:
            StatusError: the error of the endpoint; 404 for an unknown version of an installed group.
            ValueError: the request info is not set.
        """
        info = request.info
        if info is None:
            raise ValueError("the director needs the request info")
        if not info.is_resource_request:
            return self._non_resource(request)
        router = self._routers.get((info.api_group, info.api_version))
        if router is not None:
            return router.handle(request)
        if info.api_group in self._groups:
            raise status.unknown_path()
        return self.fallback(request) if self.fallback is not None else self._unknown(request)

    async def _unknown(self, _: Request) -> Response:
        return unknown_path_response(self.lifecycle)

    async def _non_resource(self, request: Request) -> Response:
        handler = self.routes.find(request.path)
        if handler is not None:
            return await handler(request)
        if request.path.startswith(("/api/", "/apis/")) or request.path in ("/api", "/apis"):
            answer = await self._discovery.handle(request)
            if answer is not None:
                return answer
            if self.fallback is not None:
                return await self.fallback(request)
        return unknown_path_response(self.lifecycle)

    def openapi(self) -> BuiltinSource:
        """Return a source of the OpenAPI documents of the installed resources, also of those installed later.

        It also has the documents that are in `documents` when this method is called.
        """
        return BuiltinSource(self.source, self.documents)

    async def _index(self, request: Request) -> Response:
        """Serve `/`: the sorted list of paths as JSON."""
        body = orjson.dumps({"paths": sorted(self.paths())}, option=orjson.OPT_INDENT_2)
        return Response(200, [JSON_TYPE], body)

    def paths(self) -> set[str]:
        """Return the paths that `/` lists: routes, health checks, groups and versions.

        The path `/` itself is not included.
        """
        paths = {*self.routes.paths(), *self.health.paths(), *(path for more in self.listed for path in more())} - {"/"}
        for gv in self.source.group_versions():
            paths |= {f"/apis/{gv.group}", f"/apis/{gv}"} if gv.group else {"/api", f"/api/{gv.version}"}
        return paths | ({"/apis", "/apis/"} if any(g for g in self._groups) else set())


def _version_document() -> Object:
    from tetrapod.generic.openapi.v3 import version_document  # imported at the first request

    return version_document()
