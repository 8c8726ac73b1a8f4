"""What is told of the pods that are already in a namespace whose level becomes stricter.

Pure. Follows k8s.io/pod-security-admission/admission/admission.go (EvaluatePodsInNamespace, prioritizePods).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tetrapod.core.podsecurity.policy import LevelVersion
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object


def by_priority(pods: Iterable[Object], exempt_runtime_classes: Collection[str]) -> list[Object]:
    """One pod of each controller first, as its others are likely the same; those of exempt runtime classes not at all."""
    first: list[Object] = []
    replicas: list[Object] = []
    seen: set[str] = set()
    for pod in pods:
        if (pod.get("spec") or {}).get("runtimeClassName") in exempt_runtime_classes:
            continue
        controller = _controller(pod)
        (replicas if controller in seen else first).append(pod)
        if controller:
            seen.add(controller)
    return first + replicas


def _controller(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner.get("uid", "") for owner in owners if owner.get("controller")), "")


class Findings:
    """Gathers the pods by what is wrong with them."""

    def __init__(self) -> None:
        self._pods: dict[str, list[str]] = {}

    def add(self, pod: str, reasons: str) -> None:
        self._pods.setdefault(reasons, []).append(pod)

    def warnings(self, namespace: str, enforce: LevelVersion, checked: int, total: int) -> list[str]:
        found = []
        if checked < total:
            found.append(f"new PodSecurity enforce level only checked against the first {checked} of {total} existing pods")
        if self._pods:
            what = f"violate the new PodSecurity enforce level {go_quote(str(enforce))}"
            found.append(f"existing pods in namespace {go_quote(namespace)} {what}")
        return found + sorted(f"{_who(pods)}: {reasons}" for reasons, pods in self._pods.items())


def _who(pods: list[str]) -> str:
    first, others = min(pods), len(pods) - 1
    if not others:
        return first
    return f"{first} (and {others} other {'pod' if others == 1 else 'pods'})"
