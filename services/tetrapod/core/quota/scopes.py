"""Matching of objects by the scopes of a quota. Upstream: podMatchesScopeFunc, pvcMatchesScopeFunc."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tetrapod.core.podspec.qos import qos_class
from tetrapod.generic.admission.quota import scopes_of
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import GroupResource, Object


def in_scope(quota: Object, resource: GroupResource, obj: Object) -> bool:
    """Return whether the object matches all scopes of the quota; True if it has none.

    Only pods, and PersistentVolumeClaims by VolumeAttributesClass (with the gate of this name), can match a scope.
    """
    return all(_matches(scope, resource, obj) for scope in scopes_of(quota))


def matching(scopes: Iterable[Object], resource: GroupResource, obj: Object) -> list[Object]:
    """Return those of the scope selectors that the object matches, in order."""
    return [scope for scope in scopes if _matches(scope, resource, obj)]


def _matches(scope: Object, resource: GroupResource, obj: Object) -> bool:
    name = scope.get("scopeName")
    if resource == ("", "persistentvolumeclaims"):
        classes = _attributes_classes(obj) or (None,)
        in_use = name == "VolumeAttributesClass" and feature_gates.enabled(name)
        return in_use and any(_selects(scope, class_name) for class_name in classes)
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
    """Return whether the pod has an activeDeadlineSeconds, as the scope Terminating requires."""
    spec = pod.get("spec") or {}
    return spec.get("activeDeadlineSeconds") is not None and spec["activeDeadlineSeconds"] >= 0


def _attributes_classes(claim: Object) -> list[str]:
    """Return the names of the claim's requested, current and target VolumeAttributesClass, as far as they are set."""
    status = claim.get("status") or {}
    class_names = (
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return [name for name in class_names if name]


def _selects(scope: Object, value: str | None) -> bool:
    """Return whether the operator and values of a scope selector match the value; None or "" means that it is unset."""
    operator, values = scope.get("operator"), scope.get("values") or ()
    if operator == "Exists":
        return bool(value)
    if operator == "DoesNotExist":
        return not value
    if operator == "In":
        return bool(value) and value in values
    return operator == "NotIn" and value not in values


def _crosses_namespaces(spec: Object) -> bool:
    """Return whether terms of pod affinity or anti-affinity have namespaces or a namespaceSelector."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms: list[Any] = list((affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = (affinity.get(kind) or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [term.get("podAffinityTerm") or {} for term in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
