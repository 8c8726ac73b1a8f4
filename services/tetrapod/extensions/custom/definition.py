"""The `ResourceDefinition` of a custom resource.

Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go, getOrCreateServingInfoFor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from tetrapod.extensions.crds import Crd, Names
from tetrapod.extensions.custom.strategy import CustomStatusStrategy, CustomStrategy
from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.generic.endpoints.scale import SCALE, ScalePaths
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.version_order import compare, priority_key

VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""In the order of upstream's discovery."""
SUBRESOURCE_VERBS: Final = ("get", "patch", "update")

ConvertMany = Callable[[Sequence[Object], str], Awaitable[list[Object]]]


def custom_definition(
    crd: Crd, obj: Object, hub: str = "", convert_many: ConvertMany | None = None
) -> ResourceDefinition:
    """Return the resource definition of a CustomResourceDefinition, with a new strategy.

    Args:
        obj: the whole CustomResourceDefinition, which is referenced and must not be modified.
        hub: the version in which the storage returns objects, if it is not the storage version.
        convert_many: converts objects to another version by a webhook. Without it, versions differ only in their names.
    """
    spec = obj["spec"]
    preserve = bool(spec.get("preserveUnknownFields"))
    versions = {v["name"]: ServedVersion(v, preserve_unknown=preserve) for v in spec["versions"]}
    stored = hub or crd.storage_version
    names = served_names(crd)
    strategy = CustomStrategy(crd.group, crd.namespaced, versions, stored)
    return ResourceDefinition(
        group=crd.group,
        resource=crd.plural,
        kind=names.kind,
        singular=names.singular,
        namespaced=crd.namespaced,
        versions=tuple(versions),
        storage_version=stored,
        storage_prefix=f"{crd.group}/{crd.plural}",
        verbs=VERBS,
        schema=lambda version: versions[version].node,
        strategy=strategy,
        list_kind=names.list_kind,
        short_names=names.short_names,
        categories=names.categories,
        subresources=_subresources(strategy, versions),
        convert_many=convert_many,
        custom=True,
        deprecated=deprecation_warnings(crd.group, names.kind, versions.values()),
    )


def served_names(crd: Crd) -> Names:
    """Return status.acceptedNames, or spec.names if no names were ever accepted."""
    return crd.accepted if crd.accepted.kind else crd.names


def _subresources(strategy: CustomStrategy, versions: Mapping[str, ServedVersion]) -> list[Subresource]:
    subresources = []
    if with_status := tuple(v.name for v in versions.values() if v.has_status):
        subresources.append(
            Subresource("status", SUBRESOURCE_VERBS, strategy=CustomStatusStrategy(strategy), versions=with_status)
        )
    subresources += [
        Subresource("scale", SUBRESOURCE_VERBS, SCALE, rest=_scale_paths(v.scale), versions=(v.name,))
        for v in versions.values()
        if v.scale is not None
    ]
    return subresources


def _scale_paths(scale: Object) -> ScalePaths:
    return ScalePaths(
        spec_replicas=_steps(scale["specReplicasPath"]),
        status_replicas=_steps(scale["statusReplicasPath"]),
        selector=_steps(scale.get("labelSelectorPath") or ""),
        required=True,
    )


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split(".")) if path else ()


def deprecation_warnings(group: str, kind: str, versions: Iterable[ServedVersion]) -> dict[str, str]:
    """Return the warning of each deprecated version, by the name of the version.

    It is the declared deprecationWarning or, if that is unset, upstream's default, which recommends a newer version.

    Args:
        group: the API group.
        kind: the kind, which the default warning names.
        versions: all versions of the resource, in any order.

    Upstream: apiextensions-apiserver/pkg/apiserver/customresource_handler.go, defaultDeprecationWarning
    """
    declared = list(versions)
    return {v.name: _warning(v, group, kind, declared) for v in declared if v.deprecated}


def _warning(version: ServedVersion, group: str, kind: str, declared: list[ServedVersion]) -> str:
    if version.deprecation_warning is not None:
        return version.deprecation_warning
    text = f"{group}/{version.name} {kind} is deprecated"
    better = [v.name for v in declared if v.served and not v.deprecated and compare(v.name, version.name) > 0]
    return f"{text}; use {group}/{min(better, key=priority_key)} {kind}" if better else text
