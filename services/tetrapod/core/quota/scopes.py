"""Matching of objects by the scopes of a quota. Upstream: podMatchesScopeFunc, pvcMatchesScopeFunc."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tetrapod.core.podspec.qos import qos_class
from tetrapod.generic.admission.quota.scopes import scopes_of
from tetrapod.machinery.gvk import GroupResource, Object


def in_scope(quota: Object, resource: GroupResource, obj: Object) -> bool:
    """Return whether the object matches all scopes.

    Quotas with scopes count only pods, and claims by VolumeAttributesClass.
    """
    return all(_matches(scope, resource, obj) for scope in scopes_of(quota))


def matching(scopes: Iterable[Object], resource: GroupResource, obj: Object) -> list[Object]:
    """Return the scopes that the object matches."""
    return [scope for scope in scopes if _matches(scope, resource, obj)]


def _matches(scope: Object, resource: GroupResource, obj: Object) -> bool:
    name = scope.get("scopeName")
    if resource == ("", "persistentvolumeclaims"):
        return name == "VolumeAttributesClass" and any(
            _selects(scope, class_name) for class_name in _attributes_classes(obj) or (None,)
        )
    if resource != ("", "pods"):
        return False
    spec = obj.get("spec") or {}
    if name == "Terminating":
        return is_terminating(obj)
    if name == "NotTerminating":
        return not is_terminating(obj)
    if name == "BestEffort":
        return qos_class(spec) == "BestEffort"
    if name == "NotBestEffort":
        return qos_class(spec) != "BestEffort"
    if name == "PriorityClass":
        return _selects(scope, spec.get("priorityClassName"))
    return name == "CrossNamespacePodAffinity" and _crosses_namespaces(spec)


def is_terminating(pod: Object) -> bool:
    """Return whether the pod has an activeDeadlineSeconds."""
    spec = pod.get("spec") or {}
    return spec.get("activeDeadlineSeconds") is not None and spec["activeDeadlineSeconds"] >= 0


def _attributes_classes(claim: Object) -> list[str]:
    """Return the requested, the current and the target VolumeAttributesClass of the claim."""
    status = claim.get("status") or {}
    class_names = (
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return [name for name in class_names if name]


def _selects(scope: Object, value: str | None) -> bool:
    """Return whether the scope selector matches the value."""
    operator, values = scope.get("operator"), scope.get("values") or ()
    if operator == "Exists":
        return bool(value)
    if operator == "DoesNotExist":
        return not value
    if operator == "In":
        return bool(value) and value in values
    return operator == "NotIn" and value not in values


def _crosses_namespaces(spec: Object) -> bool:
    """Return whether pod affinity terms refer to other namespaces."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms: list[Any] = list((affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = (affinity.get(kind) or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [term.get("podAffinityTerm") or {} for term in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
