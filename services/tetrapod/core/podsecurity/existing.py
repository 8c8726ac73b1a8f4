"""Warnings about the existing pods of a namespace whose level becomes stricter.

Without I/O. Follows k8s.io/pod-security-admission/admission/admission.go (EvaluatePodsInNamespace, prioritizePods).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tetrapod.core.podsecurity.policy import LevelVersion
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object


def by_priority(pods: Iterable[Object], exempt_runtime_classes: Collection[str]) -> list[Object]:
    """Return the pods in the order in which they are to be checked, without those of exempt runtime classes.

    The first pod of each controller comes before the other pods of controllers, because these are likely equal to it.

    Args:
        pods: the pods of a namespace.
        exempt_runtime_classes: the names of RuntimeClasses whose pods are left out.
    """
    first: list[Object] = []
    replicas: list[Object] = []
    seen_controllers: set[str] = set()
    for pod in pods:
        if (pod.get("spec") or {}).get("runtimeClassName") in exempt_runtime_classes:
            continue
        controller = _controller(pod)
        (replicas if controller in seen_controllers else first).append(pod)
        if controller:
            seen_controllers.add(controller)
    return first + replicas


def _controller(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner.get("uid", "") for owner in owners if owner.get("controller")), "")


class Findings:
    """Existing pods of a namespace that violate the namespace's new enforce level, grouped by their violations."""

    def __init__(self) -> None:
        self._pods: dict[str, list[str]] = {}

    def add(self, pod: str, reasons: str) -> None:
        """Add a pod that violates the level.

        Args:
            pod: the name of the pod.
            reasons: its violations as one text.
        """
        self._pods.setdefault(reasons, []).append(pod)

    def warnings(self, namespace: str, enforce: LevelVersion, checked: int, total: int) -> list[str]:
        """Return the warnings for the response to the namespace update; [] if all pods were checked and comply.

        Args:
            namespace: the name of the namespace.
            enforce: the new level and version.
            checked: the number of pods that were checked.
            total: the number of pods in the namespace. If it is larger than `checked`, a warning says so.
        """
        messages = []
        if checked < total:
            messages.append(
                f"new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
            )
        if self._pods:
            violation = f"violate the new PodSecurity enforce level {go_quote(str(enforce))}"
            messages.append(f"existing pods in namespace {go_quote(namespace)} {violation}")
        return messages + sorted(f"{_who(pods)}: {reasons}" for reasons, pods in self._pods.items())


def _who(pods: list[str]) -> str:
    """Return the first pod name in alphabetical order and the number of others, as in "a (and 2 other pods)"."""
    first, others = min(pods), len(pods) - 1
    if not others:
        return first
    return f"{first} (and {others} other {'pod' if others == 1 else 'pods'})"
