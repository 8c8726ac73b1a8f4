"""`limitedResources` of ResourceQuota's configuration: resources that may be used only if a quota limits them.

Upstream: k8s.io/apiserver/pkg/admission/plugin/resourcequota (config.go, apis, controller.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tetrapod.core.quota.scopes import matching
from tetrapod.generic.admission.quota import Usage, scopes_of
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.schemas import kind, list_of, string, strings, struct
from tetrapod.machinery import field as paths
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.schema_node import SchemaNode

_KINDS: Final = (
    ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
    ("resourcequota.admission.k8s.io/v1beta1", "Configuration"),
    ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"),
)


@dataclass(frozen=True, slots=True)
class LimitedResource:
    """One entry of `limitedResources`.

    Attributes:
        resource: the resource that the entry applies to.
        contains: substrings; quota resource names that contain one (such as `requests.cpu`) require a quota.
        scopes: scope selectors; an object that one selects requires a quota with that scope.
    """

    resource: GroupResource
    contains: Sequence[str] = ()
    scopes: Sequence[Object] = field(default_factory=list)


class LimitedResources:
    """All entries of `limitedResources`, with functions that check whether a write uses resources that need a quota."""

    def __init__(self, limited: Sequence[LimitedResource]) -> None:
        self._limited = limited

    def uncovered_resources(self, resource: GroupResource, used: Usage, counted: Iterable[str]) -> str:
        """Return the limited resource names that the object uses and no quota counts.

        Args:
            resource: the resource of the object.
            used: quantities that the object uses, by quota resource name.
            counted: the quota resource names that at least one quota counts for the object.

        Returns:
            The sorted names, separated by commas; "" if quotas count all limited resources that the object uses.
        """
        entries = [entry for entry in self._limited if entry.resource == resource]
        names = {
            name
            for name, quantity in used.items()
            if quantity.sign > 0
            for entry in entries
            if any(c in name for c in entry.contains)
        }
        return ",".join(sorted(names.difference(counted)))

    def uncovered_scopes(self, resource: GroupResource, obj: Object, quotas: Iterable[Object]) -> str:
        """Return the scopes of `limitedResources` that select the object and that none of the quotas has.

        As upstream, the scopes of all entries are checked for every object, regardless of the entries' resources.

        Args:
            resource: the resource of the object.
            obj: the object.
            quotas: the ResourceQuotas of its namespace.

        Returns:
            The scopes as Go prints a list; "" if no such scope exists.
        """
        matched = [scope for entry in self._limited for scope in matching(entry.scopes, resource, obj)]
        if not matched:
            return ""
        covered = {scope.get("scopeName") for quota in quotas for scope in matching(scopes_of(quota), resource, obj)}
        missing = [scope for scope in matched if scope.get("scopeName") not in covered]
        return f"[{' '.join(map(_shown, missing))}]" if missing else ""


def read_limited(data: bytes) -> LimitedResources:
    """Return the limitedResources of a ResourceQuotaConfiguration file.

    They are the resources that may be used only if a quota limits them.

    Raises:
        ValueError: the file is invalid; with upstream's text.
    """
    config = load(data, {(version, kind_): _shape(version.rpartition("/")[2]) for version, kind_ in _KINDS})
    entries: Sequence[Object] = config.get("limitedResources") or ()
    errors = [
        paths.required(f"limitedResources[{i}].resource")
        for i, entry in enumerate(entries)
        if not entry.get("resource")
    ]
    if errors:
        raise ValueError(paths.aggregate(errors))
    return LimitedResources(
        [
            LimitedResource(
                GroupResource(entry.get("apiGroup") or "", entry["resource"]),
                entry.get("matchContains") or (),
                entry.get("matchScopes") or (),
            )
            for entry in entries
        ]
    )


def _shown(scope: Object) -> str:
    """Format a scope selector as Go's `%v`."""
    return f"{{{scope.get('scopeName') or ''} {scope.get('operator') or ''} [{' '.join(scope.get('values') or ())}]}}"


def _shape(version: str) -> SchemaNode:
    scope = struct("v1.ScopedResourceSelectorRequirement", scopeName=string(), operator=string(), values=strings())
    limited = struct(
        f"{version}.LimitedResource",
        apiGroup=string(),
        resource=string(),
        matchContains=strings(),
        matchScopes=list_of(scope),
    )
    return kind(f"{version}.Configuration", limitedResources=list_of(limited))
