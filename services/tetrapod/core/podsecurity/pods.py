"""The paths of pod templates in workloads, and the pod updates that must be evaluated again.

Without I/O. Follows k8s.io/pod-security-admission/admission/admission.go (DefaultPodSpecExtractor,
isSignificantPodUpdate).
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podsecurity.seccomp import CONTAINER_ANNOTATION
from tetrapod.machinery.gvk import Object

TEMPLATES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
"""The path of the pod template by (group, resource)."""


def template_of(group: str, resource: str, obj: Object) -> Object | None:
    """Return the pod template of a workload, or None if the object has none.

    Args:
        group: the API group; group and resource must be a key of `TEMPLATES`.
        resource: the resource.
    """
    value: Object | None = obj
    for step in TEMPLATES[group, resource]:
        value = (value or {}).get(step)
    return value


def is_significant_update(new: Object, old: Object) -> bool:
    """Return whether a pod update changed an image or seccomp annotation, or added or removed containers.

    Only such updates are evaluated again; other fields that the checks read are immutable.
    """
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    annotations = [(pod.get("metadata") or {}).get("annotations") or {} for pod in (new, old)]
    pairs: list[tuple[Object, Object]] = []
    for kind in ("containers", "initContainers"):
        new_containers, old_container = spec.get(kind) or [], old_spec.get(kind) or []
        if len(new_containers) != len(old_container):
            return True
        pairs += zip(new_containers, old_container, strict=True)
    old_ephemeral = {container.get("name"): container for container in old_spec.get("ephemeralContainers") or ()}
    for container in spec.get("ephemeralContainers") or ():
        if container.get("name") not in old_ephemeral:
            return True
        pairs.append((container, old_ephemeral[container.get("name")]))
    return any(_differs(new_container, old_container, *annotations) for new_container, old_container in pairs)


def _differs(container: Object, old_container: Object, annotations: Object, old_annotations: Object) -> bool:
    key = CONTAINER_ANNOTATION + container.get("name", "")
    return container.get("image") != old_container.get("image") or annotations.get(key) != old_annotations.get(key)
