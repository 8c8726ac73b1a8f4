"""What a check of the Pod Security Standards is, and the words in which all of them report.

Follows k8s.io/pod-security-admission/policy (checks.go, helpers.go, visitor.go).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tetrapod.machinery.gvk import Object


class Violation(NamedTuple):
    reason: str
    """Short: all that is said when many pods are looked at."""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


CheckPod = Callable[[Object, Object], Violation | None]
"""(pod metadata, pod spec) -> what is wrong."""


@dataclass(frozen=True, slots=True)
class Check:
    id: str
    level: str
    revisions: dict[int, CheckPod]
    """What it checks from which minor version on, oldest first."""
    overrides: str = ""
    """The baseline check that this restricted one makes superfluous, where both apply."""


def containers(spec: Object) -> Iterator[Object]:
    """All kinds of them, in the order in which they are reported."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(kind) or ()


def security_context(owner: Object) -> Object:
    """Of a pod's spec or a container; empty where there is none."""
    return owner.get("securityContext") or {}


def security_option(owner: Object, name: str) -> Any:
    """One field of the security context; None where it is not set."""
    return security_context(owner).get(name)


def names(found: Iterable[Object]) -> list[str]:
    return [each.get("name", "") for each in found]


def quoted(items: Iterable[str]) -> str:
    """Quotes inside are left alone, as upstream does."""
    return ", ".join(f'"{item}"' for item in items)


def plural(count: Collection[Any], one: str, many: str = "") -> str:
    return one if len(count) == 1 else many or f"{one}s"


def containers_named(bad: Collection[str]) -> str:
    return f"{plural(bad, 'container')} {quoted(bad)}"


def setters(pod: bool, bad: Collection[str]) -> str:
    """Who set something: "pod", some containers, or both; empty if nobody did."""
    return " and ".join(["pod"] * pod + ([containers_named(bad)] if bad else []))


def is_windows(spec: Object) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def in_user_namespace(spec: Object) -> bool:
    return spec.get("hostUsers") is False


def unless(exempt: Callable[[Object], bool], check: CheckPod) -> CheckPod:
    """A later revision that passes over some pods."""

    def revised(metadata: Object, spec: Object) -> Violation | None:
        return None if exempt(spec) else check(metadata, spec)

    return revised
