"""Accessors of APIService objects, their condition Available, and the order in which discovery lists them.

Upstream: kube-aggregator/pkg/apis/apiregistration/helpers.go and v1/helper/helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tetrapod.machinery.conditions import is_true
from tetrapod.machinery.gvk import GroupVersion, GroupVersionResource, Object
from tetrapod.machinery.timestamps import now_rfc3339
from tetrapod.machinery.version_order import priority_key

GROUP: Final = "apiregistration.k8s.io"
APISERVICES: Final = GroupVersionResource(GROUP, "v1", "apiservices")
AVAILABLE: Final = "Available"
AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
ON_START: Final = "onstart"
ALWAYS: Final = "true"


def group_version(obj: Object) -> GroupVersion:
    """Return the group-version that an APIService's spec names."""
    spec = obj.get("spec") or {}
    return GroupVersion(spec.get("group", ""), spec.get("version", ""))


def name_for(gv: GroupVersion) -> str:
    """Return the name that the APIService of a group-version must have, such as "v1.apps"; "v1." for the core group."""
    return f"{gv.version}.{gv.group}"


def service_of(obj: Object) -> Object | None:
    """Return spec.service of an APIService: the Service of its external API server, or None for a local APIService."""
    service: Object | None = (obj.get("spec") or {}).get("service")
    return service


def condition(status: str, reason: str, message: str) -> Object:
    """Return a condition of type Available whose lastTransitionTime is the current time.

    Args:
        status: "True" or "False".
    """
    return {
        "type": AVAILABLE,
        "status": status,
        "lastTransitionTime": now_rfc3339(),
        "reason": reason,
        "message": message,
    }


def local_condition() -> Object:
    """Return the condition Available of local APIServices, which is always True."""
    return condition("True", "Local", "Local APIServices are always available")


def is_available(obj: Object) -> bool:
    """Return whether the APIService's condition Available is True."""
    return is_true(obj, AVAILABLE)


def by_priority(objects: Iterable[Object]) -> list[tuple[str, list[Object]]]:
    """Return (group, APIServices of the group) pairs in the order in which `/apis` lists the groups.

    Groups are ordered by the highest groupPriorityMinimum of their APIServices, and then by the name of the APIService
    with this priority. These names begin with the version, so that `v1.b` comes before `v1beta1.a`. The APIServices of
    a group are ordered by versionPriority, and then by version.
    """
    groups: dict[str, list[Object]] = {}
    for obj in sorted(
        objects, key=lambda obj: (-int(obj["spec"].get("groupPriorityMinimum", 0)), obj["metadata"]["name"])
    ):
        groups.setdefault(group_version(obj).group, []).append(obj)
    return [(group, sorted(members, key=_version_order)) for group, members in groups.items()]


def _version_order(obj: Object) -> tuple[int, Any]:
    return -int(obj["spec"].get("versionPriority", 0)), priority_key(group_version(obj).version)
