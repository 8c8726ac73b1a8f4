"""What may be used only where a quota counts it: `limitedResources` of ResourceQuota's configuration.

Upstream: k8s.io/apiserver/pkg/admission/plugin/resourcequota (config.go, apis, controller.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tetrapod.core.quota.scopes import matching
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.shapes import kind, list_of, string, strings, struct
from tetrapod.generic.quota.charge import Usage
from tetrapod.generic.quota.scopes import scopes_of
from tetrapod.machinery import field as paths
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.shapes.node import SchemaNode

_KINDS: Final = (
    ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
    ("resourcequota.admission.k8s.io/v1beta1", "Configuration"),
    ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"),
)


@dataclass(frozen=True, slots=True)
class LimitedResource:
    """`contains` are parts of the names under which quotas count; `scopes` are those of objects that a quota must know."""

    resource: GroupResource
    contains: Sequence[str] = ()
    scopes: Sequence[Object] = field(default_factory=list)


class LimitedResources:
    def __init__(self, limited: Sequence[LimitedResource]) -> None:
        self._limited = limited

    def uncovered(self, resource: GroupResource, used: Usage, counted: Iterable[str]) -> str:
        """What the object uses that no quota counts though one must: names, comma-separated."""
        about = [one for one in self._limited if one.resource == resource]
        names = {name for name, quantity in used.items() if quantity.sign > 0 for one in about if any(c in name for c in one.contains)}
        return ",".join(sorted(names.difference(counted)))

    def uncovered_scopes(self, resource: GroupResource, obj: Object, quotas: Iterable[Object]) -> str:
        """The scopes that the object is in without a quota for any such, as Go prints them; "" where there are none.

        Those of all limited resources are looked at, whichever resource it is, as upstream.
        """
        wanted = [scope for one in self._limited for scope in matching(one.scopes, resource, obj)]
        if not wanted:
            return ""
        covered = {scope.get("scopeName") for quota in quotas for scope in matching(scopes_of(quota), resource, obj)}
        missing = [scope for scope in wanted if scope.get("scopeName") not in covered]
        return f"[{' '.join(map(_shown, missing))}]" if missing else ""


def read_limited(data: bytes) -> LimitedResources:
    """
    Raises:
        ValueError: with upstream's text.
    """
    config = load(data, {(version, kind_): _shape(version.rpartition("/")[2]) for version, kind_ in _KINDS})
    listed: Sequence[Object] = config.get("limitedResources") or ()
    errors = [paths.required(f"limitedResources[{i}].resource") for i, one in enumerate(listed) if not one.get("resource")]
    if errors:
        raise ValueError(paths.aggregate(errors))
    return LimitedResources(
        [
            LimitedResource(
                GroupResource(one.get("apiGroup") or "", one["resource"]), one.get("matchContains") or (), one.get("matchScopes") or ()
            )
            for one in listed
        ]
    )


def _shown(scope: Object) -> str:
    return f"{{{scope.get('scopeName') or ''} {scope.get('operator') or ''} [{' '.join(scope.get('values') or ())}]}}"


def _shape(version: str) -> SchemaNode:
    scope = struct("v1.ScopedResourceSelectorRequirement", scopeName=string(), operator=string(), values=strings())
    limited = struct(
        f"{version}.LimitedResource", apiGroup=string(), resource=string(), matchContains=strings(), matchScopes=list_of(scope)
    )
    return kind(f"{version}.Configuration", limitedResources=list_of(limited))
