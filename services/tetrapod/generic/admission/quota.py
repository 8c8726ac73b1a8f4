"""ResourceQuotas: their scopes, counts of objects, and the usage that writes add.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go, CheckRequest
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.quantity import Quantity

Usage: TypeAlias = dict[str, Quantity]
"""Quantities by the resource names that a quota uses ("requests.cpu", "count/pods")."""
_ZERO: Final = Quantity.from_int(0)
ONE: Final = Quantity.from_int(1)
UNCOUNTED: Final = frozenset(
    {
        GroupResource("", "bindings"),
        GroupResource("", "componentstatuses"),
        GroupResource("", "events"),
        GroupResource("events.k8s.io", "events"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)
"""The resources that no quota counts: those that are not stored, and Events.

Upstream: pkg/quota/v1/install/registry.go, DefaultIgnoredResources
"""


def missing_usage_error(quota: Object, names: Iterable[str]) -> str:
    """Return an error text if any of `names` is missing in status.used of the quota; "" if all are there.

    The text lists all of `names`, not only the missing ones, as upstream.

    Args:
        quota: the ResourceQuota.
        names: resource names, such as `requests.cpu`.
    """
    used = (quota.get("status") or {}).get("used") or {}
    names = sorted(names)
    if all(name in used for name in names):
        return ""
    return f"status unknown for quota: {quota['metadata']['name']}, resources: {','.join(names)}"


def limit_error(quota: Object, delta: Usage) -> str:
    """Return an error text if status.used plus `delta` exceeds status.hard of the quota for any resource, else ""."""
    status = quota.get("status") or {}
    hard, used = _quantities(status.get("hard")), _quantities(status.get("used"))
    name = quota["metadata"]["name"]
    over = sorted(k for k, v in delta.items() if k in hard and used.get(k, _ZERO) + v > hard[k])
    if not over:
        return ""
    requested = ",".join(f"{k}={delta[k]}" for k in over)
    return (
        f"exceeded quota: {name}, requested: {requested}, "
        f"used: {','.join(f'{k}={used[k]}' for k in over if k in used)}, "
        f"limited: {','.join(f'{k}={hard[k]}' for k in over)}"
    )


def add_usage(quota: Object, delta: Usage) -> dict[str, str] | None:
    """Return status.used of the quota with `delta` added, without changing the quota.

    Resource names that are not in status.hard are not added. The result is None if none of the names in `delta` is
    there.
    """
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, _quantities(status.get("used"))
    changes = {k: used.get(k, _ZERO) + v for k, v in delta.items() if k in hard}
    if not changes:
        return None
    return {k: str(v) for k, v in {**used, **changes}.items()}


def growth(new: Usage, old: Usage) -> Usage:
    """Return, by resource name, how much larger each quantity in `new` is than in `old`.

    Names whose quantity is equal or smaller are left out: the quota controller subtracts decreases later. A name
    that is missing in `old` counts as zero.
    """
    return {k: more for k, v in new.items() if (more := v - old.get(k, _ZERO)).sign > 0}


def _quantities(listed: Mapping[str, Any] | None) -> Usage:
    return {name: Quantity.of(value) for name, value in (listed or {}).items()}


def count_name(resource: GroupResource) -> str:
    """Return the resource name by which a quota limits the number of these objects: `count/deployments.apps`.

    Upstream: pkg/quota/v1/generic, objectCountEvaluator
    """
    return f"count/{resource}"


def scopes_of(quota: Object) -> list[Object]:
    """Return the scopes of a quota as scope selector requirements, from spec.scopes and spec.scopeSelector."""
    spec = quota.get("spec") or {}
    requirements: list[Object] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    return [*requirements, *((spec.get("scopeSelector") or {}).get("matchExpressions") or ())]
