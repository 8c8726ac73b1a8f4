"""Discovery documents, both classic and aggregated, from resource definitions.

Upstream: k8s.io/apiserver/pkg/endpoints/discovery/{group.go,version.go,aggregated}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object


def api_resource_list(group_version: GroupVersion, definitions: Iterable[ResourceDefinition]) -> Object:
    """Return the APIResourceList of `/apis/GROUP/VERSION`, sorted by name, each resource followed by its subresources.

    As upstream, the list of the core group has no apiVersion.

    Args:
        group_version: the group-version.
        definitions: its resources. Their subresources are filtered by the version.
    """
    resources: list[Object] = []
    for definition in sorted(definitions, key=lambda d: d.resource):
        resources.append(_api_resource(definition))
        resources.extend(
            _api_subresource(definition, subresource, group_version.version)
            for subresource in sorted(definition.subresources_in(group_version.version), key=lambda s: s.name)
        )
    document: Object = {"kind": "APIResourceList"}
    if group_version.group:
        document["apiVersion"] = "v1"
    return document | {"groupVersion": str(group_version), "resources": resources}


def _api_resource(definition: ResourceDefinition) -> Object:
    resource: Object = {
        "name": definition.resource,
        "singularName": definition.singular,
        "namespaced": definition.namespaced,
        "kind": definition.kind,
        "verbs": sorted(definition.verbs),
    }
    if definition.short_names:
        resource["shortNames"] = list(definition.short_names)
    if definition.categories:
        resource["categories"] = list(definition.categories)
    if definition.storage_version_hash and feature_gates.enabled("StorageVersionHash"):
        resource["storageVersionHash"] = definition.storage_version_hash
    return resource


def _api_subresource(definition: ResourceDefinition, subresource: Subresource, version: str) -> Object:
    document: Object = {
        "name": f"{definition.resource}/{subresource.name}",
        "singularName": "",
        "namespaced": definition.namespaced,
    }
    kind = subresource.kind
    if kind is not None and kind.group_version != GroupVersion(definition.group, version):
        document |= {"group": kind.group, "version": kind.version}
    return document | {"kind": kind.kind if kind else definition.kind, "verbs": sorted(subresource.verbs)}


def api_group(group: str, versions: Sequence[str]) -> Object:
    """Return an APIGroup as an element of an APIGroupList, which has neither kind nor apiVersion.

    Args:
        group: the name of the group.
        versions: the versions in order of preference; at least one.
    """
    described = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions]
    return {"name": group, "versions": described, "preferredVersion": described[0]}


def aggregated_group(name: str, versions: Sequence[Object]) -> Object:
    """Return an APIGroupDiscovery, an item of an APIGroupDiscoveryList. `versions` are results of `aggregated_version`.

    The core group is `name` "".
    """
    metadata = {"name": name} if name else {}
    return {"metadata": metadata, "versions": list(versions)}


def aggregated_version(version: str, definitions: Iterable[ResourceDefinition]) -> Object:
    """Return an APIVersionDiscovery with the resources sorted by name and the freshness `Current`.

    Args:
        version: the version.
        definitions: the resources of the group-version.
    """
    resources = [_aggregated_resource(d, version) for d in sorted(definitions, key=lambda d: d.resource)]
    document: Object = {"version": version}
    if resources:
        document["resources"] = resources
    return document | {"freshness": "Current"}


def _aggregated_resource(definition: ResourceDefinition, version: str) -> Object:
    document: Object = {
        "resource": definition.resource,
        "responseKind": {"group": "", "version": "", "kind": definition.kind},
        "scope": "Namespaced" if definition.namespaced else "Cluster",
        "singularResource": definition.singular,
        "verbs": sorted(definition.verbs),
    }
    if definition.short_names:
        document["shortNames"] = list(definition.short_names)
    if definition.categories:
        document["categories"] = list(definition.categories)
    subresources = [
        _aggregated_subresource(definition, s, version)
        for s in sorted(definition.subresources_in(version), key=lambda s: s.name)
    ]
    if subresources:
        document["subresources"] = subresources
    return document


def _aggregated_subresource(definition: ResourceDefinition, subresource: Subresource, version: str) -> Object:
    kind = subresource.kind or GroupVersionKind(definition.group, version, definition.kind)
    same = kind.group_version == GroupVersion(definition.group, version)
    response = {"group": "" if same else kind.group, "version": "" if same else kind.version, "kind": kind.kind}
    return {"subresource": subresource.name, "responseKind": response, "verbs": sorted(subresource.verbs)}
