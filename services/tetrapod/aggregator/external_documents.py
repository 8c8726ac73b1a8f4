"""Parsing of the discovery documents of external API servers, with the types that Go uses.

Unknown fields are dropped, and wrong types are errors. The module does no I/O.

Upstream: kube-aggregator/pkg/apiserver/handler_discovery.go, fetchFreshDiscoveryForService; for the unaggregated form
k8s.io/apiserver/pkg/endpoints/installer.go, ConvertGroupVersionIntoToDiscovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from tetrapod.machinery.gvk import GroupVersion, Object

Versions: TypeAlias = Mapping[GroupVersion, Object]
"""The APIVersionDiscovery objects of an aggregated discovery document, without their freshness."""


class _Kind(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Subresource(msgspec.Struct, rename="camel"):
    subresource: str = ""
    response_kind: _Kind | None = None
    accepted_types: list[_Kind] | None = None
    verbs: list[str] | None = None


class _Resource(msgspec.Struct, rename="camel"):
    resource: str = ""
    response_kind: _Kind | None = None
    scope: str = ""
    singular_resource: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None
    subresources: list[_Subresource] | None = None


class _Version(msgspec.Struct):
    version: str = ""
    resources: list[_Resource] | None = None


class _Metadata(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    versions: list[_Version] | None = None


class _GroupList(msgspec.Struct):
    items: list[_Group] | None = None


class _Classic(msgspec.Struct, rename="camel"):
    name: str = ""
    singular_name: str = ""
    namespaced: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None

    @property
    def scope(self) -> str:
        return "Namespaced" if self.namespaced else "Cluster"

    @property
    def response_kind(self) -> _Kind:
        return _Kind(self.group, self.version, self.kind) if self.kind else _Kind()


class _ClassicList(msgspec.Struct):
    resources: list[_Classic] | None = None


def read_aggregated(body: bytes) -> Versions:
    """Return the APIVersionDiscovery objects of an APIGroupDiscoveryList by group-version, without freshness.

    Raises:
        ValueError: the document is malformed.
    """
    decoded = msgspec.json.decode(body, type=_GroupList)
    return {
        GroupVersion(group.metadata.name, version.version): _version(version.version, version.resources or [])
        for group in decoded.items or []
        for version in group.versions or []
    }


def read_classic(gv: GroupVersion, body: bytes) -> Object:
    """Convert an APIResourceList to an APIVersionDiscovery object, without freshness.

    Subresources are moved below their resource, which is created if it is missing.

    Args:
        gv: the group-version of the list.
        body: the list as JSON.

    Raises:
        ValueError: the list is malformed, or a subresource has another scope than its resource.
    """
    entries = msgspec.json.decode(body, type=_ClassicList).resources or []
    resources: dict[str, _Resource] = {}
    for entry in entries:
        if "/" not in entry.name:
            resources[entry.name] = _Resource(
                resource=entry.name,
                response_kind=_Kind(entry.group, entry.version, entry.kind),
                scope=entry.scope,
                singular_resource=entry.singular_name,
                verbs=entry.verbs,
                short_names=entry.short_names,
                categories=entry.categories,
                subresources=[],
            )
    for entry in entries:
        name, slash, subresource = entry.name.partition("/")
        if not slash:
            continue
        parent = resources.setdefault(name, _Resource(resource=name, scope=entry.scope, subresources=[]))
        if parent.scope != entry.scope:
            raise ValueError(
                f"{name} (scope: {parent.scope}) and its {subresource} (scope: {entry.scope}) do not match"
            )
        assert parent.subresources is not None
        parent.subresources.append(_Subresource(subresource, entry.response_kind, None, entry.verbs))
    return _version(gv.version, list(resources.values()))


def _version(name: str, resources: list[_Resource]) -> Object:
    document: Object = {"version": name}
    if resources:
        document["resources"] = [_resource(resource) for resource in resources]
    return document


def _resource(resource: _Resource) -> Object:
    document: Object = {
        "resource": resource.resource,
        "responseKind": _kind(resource.response_kind),
        "scope": resource.scope,
        "singularResource": resource.singular_resource,
        "verbs": resource.verbs,
    }
    if resource.short_names:
        document["shortNames"] = resource.short_names
    if resource.categories:
        document["categories"] = resource.categories
    if resource.subresources:
        document["subresources"] = [_subresource(subresource) for subresource in resource.subresources]
    return document


def _subresource(subresource: _Subresource) -> Object:
    document: Object = {"subresource": subresource.subresource, "responseKind": _kind(subresource.response_kind)}
    if subresource.accepted_types:
        document["acceptedTypes"] = [_kind(kind) for kind in subresource.accepted_types]
    return document | {"verbs": subresource.verbs}


def _kind(kind: _Kind | None) -> Object:
    """Return a kind as JSON, with empty fields for None.

    Clients older than 1.26.4 panic if a document has no kind (kubernetes/kubernetes#118361).
    """
    kind = kind or _Kind()
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}
