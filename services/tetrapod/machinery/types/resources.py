"""The built-in resources as upstream's discovery reports them, in its order: names, scope, verbs and subresources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from tetrapod.machinery.gvk import GroupVersionKind


@dataclass(frozen=True, slots=True)
class SubresourceFacts:
    """A subresource as discovery reports it. Its kind may be in another group-version than that of its resource.

    Attributes:
        name: the name of the subresource without that of the resource, such as "status".
        verbs: the verbs that it supports.
    """

    name: str
    kind: GroupVersionKind
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourceFacts:
    """A resource of one group-version as discovery reports it.

    Attributes:
        name: the plural name.
        kind: the kind, which may be in another group-version.
        singular: the singular name.
        namespaced: whether the resource is namespaced.
        verbs: the verbs that it supports.
        short_names: the short names.
        categories: the categories, such as "all".
        storage_version_hash: the hash; "" if upstream has none.
        subresources: its subresources.
    """

    name: str
    kind: GroupVersionKind
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    storage_version_hash: str
    subresources: tuple[SubresourceFacts, ...]


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """An API group as discovery reports it.

    Attributes:
        name: the name of the group; "" for the core group.
        versions: the versions that are served by default, in order of preference.
        optional: the versions that are served only if --runtime-config enables them, in order of preference.
    """

    name: str
    versions: tuple[str, ...]
    optional: tuple[str, ...] = ()


@cache
def groups() -> tuple[GroupFacts, ...]:
    """Return the built-in groups in discovery's order, beginning with the legacy group "".

    Groups without a version that is served by default are included.
    """
    return tuple(
        GroupFacts(entry["group"], tuple(entry["versions"]), tuple(entry.get("optional", ()))) for entry in _read()
    )


def resource_facts(group: str, version: str) -> tuple[ResourceFacts, ...]:
    """Return the resources of a group-version in discovery's order; () if the group-version is not built in."""
    for entry in _read():
        versions = entry["versions"] | entry.get("optional", {})
        if entry["group"] == group and version in versions:
            return tuple(_resource(group, version, item) for item in versions[version])
    return ()


def _read() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = orjson.loads(files(__package__).joinpath("data/resources.json").read_bytes())
    return entries


def _resource(group: str, version: str, item: dict[str, Any]) -> ResourceFacts:
    return ResourceFacts(
        name=item["name"],
        kind=_kind(group, version, item),
        singular=item.get("singularName", ""),
        namespaced=item.get("namespaced", False),
        verbs=tuple(item.get("verbs", ())),
        short_names=tuple(item.get("shortNames", ())),
        categories=tuple(item.get("categories", ())),
        storage_version_hash=item.get("storageVersionHash", ""),
        subresources=tuple(
            SubresourceFacts(sub["name"], _kind(group, version, sub), tuple(sub["verbs"]))
            for sub in item["subresources"]
        ),
    )


def _kind(group: str, version: str, item: dict[str, Any]) -> GroupVersionKind:
    """Return the kind of a resource or subresource.

    Args:
        group: the group of the resource.
        version: the version of the resource.
        item: its data, which has a group and version only if those of the kind differ (`autoscaling/v1 Scale`).
    """
    if "version" in item:
        return GroupVersionKind(item.get("group", ""), item["version"], item["kind"])
    return GroupVersionKind(group, version, item.get("kind", ""))
