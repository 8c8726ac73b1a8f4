"""Where objects keep a pod's spec, and which updates of a pod are worth another look.

Pure. Follows k8s.io/pod-security-admission/admission/admission.go (DefaultPodSpecExtractor, isSignificantPodUpdate).
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
"""The template's place by group and resource."""


def template_of(group: str, resource: str, obj: Object) -> Object | None:
    found: Object | None = obj
    for step in TEMPLATES[group, resource]:
        found = (found or {}).get(step)
    return found


def is_significant_update(new: Object, old: Object) -> bool:
    """Whether an image changed or an ephemeral container came: all else of a pod that matters cannot change."""
    spec, was = new.get("spec") or {}, old.get("spec") or {}
    annotations = [(pod.get("metadata") or {}).get("annotations") or {} for pod in (new, old)]
    pairs: list[tuple[Object, Object]] = []
    for kind in ("containers", "initContainers"):
        now, before = spec.get(kind) or [], was.get(kind) or []
        if len(now) != len(before):
            return True
        pairs += zip(now, before, strict=True)
    known = {each.get("name"): each for each in was.get("ephemeralContainers") or ()}
    for each in spec.get("ephemeralContainers") or ():
        if each.get("name") not in known:
            return True
        pairs.append((each, known[each.get("name")]))
    return any(_differs(after, before, *annotations) for after, before in pairs)


def _differs(container: Object, before: Object, annotations: Object, were: Object) -> bool:
    key = CONTAINER_ANNOTATION + container.get("name", "")
    return container.get("image") != before.get("image") or annotations.get(key) != were.get(key)
