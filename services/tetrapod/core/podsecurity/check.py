"""The definition of a check of the Pod Security Standards, and helpers for the texts of violations.

Follows k8s.io/pod-security-admission/policy (checks.go, helpers.go, visitor.go).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tetrapod.machinery.gvk import Object


class Violation(NamedTuple):
    """A violation of a check."""

    reason: str
    """The short text, used alone in reports about many pods."""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


CheckPod = Callable[[Object, Object], Violation | None]
"""Returns the violation for (pod metadata, pod spec), or None."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check with its implementations by version."""

    id: str
    level: str
    revisions: dict[int, CheckPod]
    """The implementation by the first minor version that it applies to."""
    overrides: str = ""
    """The id of the baseline check that is skipped where this restricted check applies."""


def containers(spec: Object) -> Iterator[Object]:
    """Yield all containers, in the order of reports."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(kind) or ()


def security_context(owner: Object) -> Object:
    """Return the security context of a pod spec or a container, or {}."""
    return owner.get("securityContext") or {}


def security_option(owner: Object, name: str) -> Any:
    """Return a field of the security context, or None."""
    return security_context(owner).get(name)


def names(items: Iterable[Object]) -> list[str]:
    """Return the names of containers or volumes."""
    return [each.get("name", "") for each in items]


def quoted(items: Iterable[str]) -> str:
    """Return the items in quotes, comma-separated; quotes inside are not escaped, as upstream."""
    return ", ".join(f'"{item}"' for item in items)


def plural(count: Collection[Any], one: str, many: str = "") -> str:
    """Return the singular for exactly one item, else the plural."""
    return one if len(count) == 1 else many or f"{one}s"


def containers_named(bad: Collection[str]) -> str:
    """Return a text that lists the containers."""
    return f"{plural(bad, 'container')} {quoted(bad)}"


def setters(pod: bool, bad: Collection[str]) -> str:
    """Return the subject of a violation: "pod", the containers, or both; "" if neither violates."""
    return " and ".join(["pod"] * pod + ([containers_named(bad)] if bad else []))


def is_windows(spec: Object) -> bool:
    """Return whether the pod is a Windows pod."""
    return (spec.get("os") or {}).get("name") == "windows"


def in_user_namespace(spec: Object) -> bool:
    """Return whether the pod has its own user namespace."""
    return spec.get("hostUsers") is False


def unless(exempt: Callable[[Object], bool], check: CheckPod) -> CheckPod:
    """Return a later version of the check that skips exempt pods."""

    def revised(metadata: Object, spec: Object) -> Violation | None:
        return None if exempt(spec) else check(metadata, spec)

    return revised
