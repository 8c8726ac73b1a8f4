"""The Go packages of upstream's internal types, which error texts and traces name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PACKAGES: Final[Mapping[str, str]] = {
    "": "core",
    "events.k8s.io": "core",
    "internal.apiserver.k8s.io": "apiserverinternal",
}
OWN_SCHEMES: Final = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
"""The groups of built-in kinds that upstream serves by servers of their own, each with a scheme of its own."""


def go_package(group: str) -> str:
    """Return the Go package of a group's internal types: `core`, `apps`, `rbac`."""
    return _PACKAGES.get(group) or group.partition(".")[0]


def go_type(group: str, kind: str, *, custom: bool = False) -> str:
    """Return the Go type of a kind's objects (`*core.Pod`); for a custom resource that of unstructured objects."""
    return "*unstructured.Unstructured" if custom else f"*{go_package(group)}.{kind}"
