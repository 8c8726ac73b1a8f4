"""Changes to a new pod before validation: expanded label keys and AppArmor fields.

Upstream: pkg/registry/core/pod/strategy.go (mutatePodAffinity, mutateTopologySpreadConstraints,
applyAppArmorVersionSkew).
"""

from __future__ import annotations

from collections.abc import Iterator

from tetrapod.core.podspec.annotations import APP_ARMOR, app_armor_field
from tetrapod.core.podspec.scheduling import merges_keys
from tetrapod.core.podspec.security import all_containers
from tetrapod.machinery.gvk import Object


def merge_label_keys(pod: Object) -> None:
    """Turn `matchLabelKeys` and `mismatchLabelKeys` into expressions of the labelSelector beside them, in place.

    The values are those of the pod's own labels; keys that it does not have are ignored.
    """
    labels = pod["metadata"].get("labels") or {}
    spec = pod["spec"]
    constraints = spec.get("topologySpreadConstraints") if merges_keys() else None
    for term in (*_affinity_terms(spec.get("affinity") or {}), *(constraints or ())):
        selector = term.get("labelSelector")
        if selector is None:  # a nil selector matches nothing and stays nil
            continue
        for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            added = [
                {"key": key, "operator": operator, "values": [labels[key]]}
                for key in term.get(keys) or ()
                if key in labels
            ]
            if added:
                selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def _affinity_terms(affinity: Object) -> Iterator[Object]:
    for kind in ("podAffinity", "podAntiAffinity"):
        part = affinity.get(kind) or {}
        for weighted in part.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}
        yield from part.get("requiredDuringSchedulingIgnoredDuringExecution") or ()


def app_armor_into_fields(pod: Object) -> list[str]:
    """Copy AppArmor profiles from deprecated annotations into unset `appArmorProfile` fields of containers, in place.

    Windows pods are left as they are.

    Returns:
        A deprecation warning for each annotation whose container has no `appArmorProfile`. An annotation that equals
        the pod's profile gives none.
    """
    annotations = pod["metadata"].get("annotations")
    if not annotations or not any(key.startswith(APP_ARMOR) for key in annotations):
        return []
    spec = pod["spec"]
    if (spec.get("os") or {}).get("name") == "windows":
        return []
    pod_profile = (spec.get("securityContext") or {}).get("appArmorProfile")
    warnings = []
    for container, _ in all_containers(spec, "spec"):
        key = APP_ARMOR + (container.get("name") or "")
        if key not in annotations or (container.get("securityContext") or {}).get("appArmorProfile") is not None:
            continue
        profile = app_armor_field(annotations[key])
        if profile is not None and profile == pod_profile:
            continue
        if profile is not None:
            container["securityContext"] = {**(container.get("securityContext") or {}), "appArmorProfile": profile}
        warnings.append(f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead')
    return warnings
