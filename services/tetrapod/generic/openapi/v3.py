"""OpenAPI v3 documents of the built-in APIs: of a group-version, of a group, and of `/api`, `/apis` and `/version`.

Documents are built on request; handlers.py caches the encoded ones.
Upstream: k8s.io/kube-openapi/pkg/builder3, handler3
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tetrapod.generic.openapi.operations import META, Operation, operation_id, operation_part, path_item, tag
from tetrapod.generic.openapi.resource_paths import ResourcePaths, SubresourcePaths
from tetrapod.generic.openapi.schemas import references, schemas_for
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.types.definitions import definition_of

INFO: Final = {"title": "Kubernetes", "version": "1.37"}
SECURITY: Final = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "in": "header",
        "name": "authorization",
    },
}


_VERSIONS: Final = "get available API versions"


def assemble(paths: dict[str, Object], schemas: dict[str, Object]) -> Object:
    """Return an OpenAPI v3 document with these paths and schemas."""
    components: Object = {"schemas": schemas} if schemas else {}
    return {"openapi": "3.0.0", "info": INFO, "paths": paths, "components": {**components, "securitySchemes": SECURITY}}


def group_version_document(definitions: Iterable[ResourceDefinition], group_version: GroupVersion) -> Object:
    """Return the OpenAPI v3 document of a group-version with the resources `definitions`."""
    group, version = group_version
    root = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    name, answer = operation_id("get", group, version, "APIResources"), META + "APIResourceList"
    about = Operation("get", name, tag(group, version), answer, text="get available resources")
    paths = {root: path_item(root, [about])}
    for definition in definitions:
        paths.update(resource_paths(definition, version).paths())
    return assemble(dict(sorted(paths.items())), schemas_for(references(paths), group_version))


def group_document(group: str) -> Object:
    """Return the document of `/apis/GROUP/`, which lists the versions of the group."""
    path = f"/apis/{group}/"
    about = Operation(
        "get",
        operation_id("get", group, "", "APIGroup"),
        tag(group),
        META + "APIGroup",
        text="get information of a group",
    )
    return _small(path, about)


def api_document() -> Object:
    """Return the document of `/api/`, which lists the versions of the core group."""
    return _small("/api/", Operation("get", "getCoreAPIVersions", "core", META + "APIVersions", text=_VERSIONS))


def apis_document() -> Object:
    """Return the document of `/apis/`, which lists the groups."""
    return _small("/apis/", Operation("get", "getAPIVersions", "apis", META + "APIGroupList", text=_VERSIONS))


def version_document() -> Object:
    """Return the document of `/version/`, the version of the server."""
    answer = "io.k8s.apimachinery.pkg.version.Info"
    text = "get the version information for this server"
    return _small(
        "/version/", Operation("get", "getCodeVersion", "version", answer, produces=("application/json",), text=text)
    )


def text_document(path: str, name: str, media_type: str, text: str) -> Object:
    """Return the document of an endpoint whose GET returns text, such as `/openid/v1/jwks/`.

    Args:
        path: the path.
        name: the operationId.
        media_type: the media type of the response.
        text: the description.
    """
    first = operation_part(path.strip("/").split("/")[0], False)
    label = first[:1].upper() + first[1:] if path.startswith("/.") else first
    return _small(path, Operation("get", name, label, "", produces=(media_type,), text=text))


def _small(path: str, operation: Operation) -> Object:
    paths = {path: path_item(path, [operation])}
    return assemble(paths, schemas_for(references(paths)))


def resource_paths(definition: ResourceDefinition, version: str) -> ResourcePaths:
    """Return the facts about a resource that determine its OpenAPI paths in this version."""
    gvk = definition.gvk(version)
    list_kind = gvk._replace(kind=definition.list_kind or f"{definition.kind}List")
    return ResourcePaths(
        gvk=gvk,
        plural=definition.resource,
        namespaced=definition.namespaced,
        verbs=definition.verbs,
        definition=definition_of(gvk),
        list_definition=definition_of(list_kind) if "list" in definition.verbs else "",
        subresources=tuple(_subresource(s, gvk) for s in definition.subresources_in(version)),
        returns_deleted=definition.strategy.returns_deleted_object(version),
    )


def _subresource(sub: Subresource, parent: GroupVersionKind) -> SubresourcePaths:
    kind = sub.kind or parent
    try:
        definition = definition_of(kind)
    except KeyError:  # the options of connect subresources have no schema
        definition = ""
    return SubresourcePaths(sub.name, sub.verbs, kind, definition)
