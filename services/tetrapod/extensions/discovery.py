"""Discovery of custom resources: the documents of their groups, and of single groups and versions.

Only established definitions are listed. The verbs of a terminating definition do not include create, patch and update.

Upstream: apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tetrapod.extensions.crds import Crd, Crds
from tetrapod.extensions.custom.definition import SUBRESOURCE_VERBS, VERBS
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.discovery import documents
from tetrapod.generic.discovery.negotiation import answer_document
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.registry.stored_versions import storage_version_hash
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.version_order import priority_key

_TERMINATING_VERBS: Final = ("delete", "deletecollection", "get", "list", "watch")
_SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")


class CustomDiscovery:
    """A `DiscoverySource` of the groups and versions that CustomResourceDefinitions define, without built-in ones."""

    def __init__(self, crds: Crds) -> None:
        self._crds = crds

    @property
    def generation(self) -> int:
        return self._crds.generation

    def core_versions(self) -> list[str]:
        return []

    def groups(self) -> list[Object]:
        return [documents.api_group(group, versions) for group, versions in self._served().items()]

    def resources(self, group: str, version: str) -> Object | None:
        serving = self._of(group, version)
        if not serving:
            return None
        resources = [resource for crd in serving for resource in _api_resources(crd, version)]
        group_version = str(GroupVersion(group, version))
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}

    def aggregated(self, core: bool) -> list[Object]:
        if core:
            return []
        return [
            documents.aggregated_group(group, [self._aggregated_version(group, version) for version in versions])
            for group, versions in self._served().items()
        ]

    def answer(self, request: Request) -> Response | None:
        """Return the response to /apis/GROUP or /apis/GROUP/VERSION for any method.

        Returns:
            None for other paths, and if no custom resource is served in the group or version.
        """
        parts = request.path.strip("/").split("/")
        document: Object | None = None
        if len(parts) == 2:
            group = next((g for g in self.groups() if g["name"] == parts[1]), None)
            document = {"kind": "APIGroup", "apiVersion": "v1", **group} if group is not None else None
        elif len(parts) == 3:
            document = self.resources(parts[1], parts[2])
        # Upstream offers the resources of a version of custom resources in all media types but CBOR.
        return None if document is None else answer_document(request, document, cbor=len(parts) == 2)

    def group_versions(self) -> list[GroupVersion]:
        """Return all group-versions that are served."""
        return list(self._crds.served())

    def _served(self) -> dict[str, list[str]]:
        """Return the served versions of each group in order of preference, with the groups sorted by name."""
        versions_by_group: dict[str, list[str]] = {}
        for group, version in self._crds.served():
            versions_by_group.setdefault(group, []).append(version)
        return {group: sorted(versions_by_group[group], key=priority_key) for group in sorted(versions_by_group)}

    def _of(self, group: str, version: str) -> list[Crd]:
        return self._crds.served().get(GroupVersion(group, version), [])

    def _aggregated_version(self, group: str, version: str) -> Object:
        resources = [_aggregated_resource(crd, version) for crd in self._of(group, version)]
        return {"version": version, "resources": resources, "freshness": "Current"}


def _verbs(crd: Crd) -> list[str]:
    return list(_TERMINATING_VERBS if crd.terminating else VERBS)


def _api_resources(crd: Crd, version: str) -> Iterable[Object]:
    names = crd.accepted
    resource: Object = {
        "name": names.plural,
        "singularName": names.singular,
        "namespaced": crd.namespaced,
        "kind": names.kind,
        "verbs": _verbs(crd),
    }
    _add_names(resource, crd)
    if feature_gates.enabled("StorageVersionHash") and (storage_hash := _storage_version_hash(crd)):
        resource["storageVersionHash"] = storage_hash
    yield resource
    for name, kind in _subresources(crd, version):
        entry: Object = {"name": f"{names.plural}/{name}", "singularName": "", "namespaced": crd.namespaced}
        if kind is not None:
            entry |= {"group": kind.group, "version": kind.version}
        yield entry | {"kind": kind.kind if kind else names.kind, "verbs": list(SUBRESOURCE_VERBS)}


def _aggregated_resource(crd: Crd, version: str) -> Object:
    names = crd.accepted
    own = GroupVersionKind(crd.group, version, names.kind)
    resource: Object = {
        "resource": names.plural,
        "responseKind": _kind(own),
        "scope": "Namespaced" if crd.namespaced else "Cluster",
        "singularResource": names.singular,
        "verbs": _verbs(crd),
    }
    _add_names(resource, crd)
    subresources = [
        {"subresource": name, "responseKind": _kind(kind or own), "verbs": list(SUBRESOURCE_VERBS)}
        for name, kind in _subresources(crd, version)
    ]
    if subresources:
        resource["subresources"] = subresources
    return resource


def _add_names(resource: Object, crd: Crd) -> None:
    if crd.accepted.short_names:
        resource["shortNames"] = list(crd.accepted.short_names)
    if crd.accepted.categories:
        resource["categories"] = list(crd.accepted.categories)


def _subresources(crd: Crd, version: str) -> list[tuple[str, GroupVersionKind | None]]:
    declared_version = crd.version(version)
    assert declared_version is not None
    declared: list[tuple[str, GroupVersionKind | None]] = [("status", None)] if declared_version.status else []
    return [*declared, ("scale", _SCALE)] if declared_version.scale else declared


def _kind(kind: GroupVersionKind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _storage_version_hash(crd: Crd) -> str:
    """Return the storageVersionHash of discovery, or "" if the storage version is not served."""
    version = crd.storage_version
    return storage_version_hash(crd.group, version, crd.accepted.kind) if crd.serves(version) else ""
