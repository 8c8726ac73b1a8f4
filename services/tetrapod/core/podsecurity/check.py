"""The definition of a check of the Pod Security Standards, and functions for the texts of violations.

Upstream: k8s.io/pod-security-admission/policy (checks.go, helpers.go, visitor.go).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tetrapod.machinery.gvk import Object


class Violation(NamedTuple):
    """The finding that a pod violates a check. Its `str` is the text for errors: reason and detail.

    Attributes:
        reason: the short text, used alone in reports about many pods.
        detail: the violating containers or fields; "" for none.
    """

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


CheckPod = Callable[[Object, Object], Violation | None]
"""Returns the violation for (pod metadata, pod spec), or None."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the Pod Security Standards, which can have changed between Kubernetes versions.

    Attributes:
        id: upstream's name of the check.
        level: "baseline" or "restricted"; pods of the restricted level must pass both.
        revisions: the implementations, each by the first minor version of Kubernetes that it applies to (0 for 1.0).
        overrides: the id of the baseline check that is skipped where this restricted check applies; "" for none.
    """

    id: str
    level: str
    revisions: dict[int, CheckPod]
    overrides: str = ""


def containers(spec: Object) -> Iterator[Object]:
    """Yield the init containers, the containers and the ephemeral containers, in the order in which texts list them."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(kind) or ()


def security_context(owner: Object) -> Object:
    """Return the security context of a pod spec or a container, or {}."""
    return owner.get("securityContext") or {}


def security_option(owner: Object, name: str) -> Any:
    """Return a field of the securityContext of a pod spec or a container, or None if it is unset."""
    return security_context(owner).get(name)


def names(items: Iterable[Object]) -> list[str]:
    """Return the names of containers, volumes or sysctls, in order."""
    return [each.get("name", "") for each in items]


def quoted(items: Iterable[str]) -> str:
    """Return the items in double quotes, comma-separated. As upstream, quotes in items are not escaped."""
    return ", ".join(f'"{item}"' for item in items)


def plural(count: Collection[Any], singular: str, plural_form: str = "") -> str:
    """Return `singular` if there is exactly one item, else `plural_form`.

    Args:
        count: the items.
        plural_form: the plural; "" for `singular` with an "s".
    """
    return singular if len(count) == 1 else plural_form or f"{singular}s"


def containers_named(bad: Collection[str]) -> str:
    """Return a text such as `containers "a", "b"`.

    Args:
        bad: the names of the containers.
    """
    return f"{plural(bad, 'container')} {quoted(bad)}"


def setters(pod: bool, bad: Collection[str]) -> str:
    """Return the subject of a violation's text: "pod", the containers, or both with "and"; "" for neither.

    Args:
        pod: whether the pod itself violates the check.
        bad: the names of the violating containers.
    """
    return " and ".join(["pod"] * pod + ([containers_named(bad)] if bad else []))


def is_windows(spec: Object) -> bool:
    """Return whether the pod spec's os.name is "windows"."""
    return (spec.get("os") or {}).get("name") == "windows"


def in_user_namespace(spec: Object) -> bool:
    """Return whether the pod spec sets hostUsers to False, so that the pod has a user namespace of its own."""
    return spec.get("hostUsers") is False


def unless(exempt: Callable[[Object], bool], check: CheckPod) -> CheckPod:
    """Return a check that finds no violation in pods for which `exempt` returns True, and calls `check` for all others.

    Args:
        exempt: returns whether a pod is exempt, called with the pod spec.
    """

    def revised(metadata: Object, spec: Object) -> Violation | None:
        return None if exempt(spec) else check(metadata, spec)

    return revised
