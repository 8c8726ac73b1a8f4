"""What the containers of a pod must specify under a quota (upstream: the pod evaluator's Constraints)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tetrapod.core.quota.pods import says_resources
from tetrapod.machinery.gvk import Object

_MUST_SPECIFY: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})


def unspecified(pod: Object, hard: Iterable[str]) -> str:
    """Which containers leave out what the quota limits: `cpu for: a,b; limits.memory for: a`; "" where none does."""
    required = sorted(_MUST_SPECIFY & set(hard))
    if not required or says_resources(pod):
        return ""
    spec = pod.get("spec") or {}
    missing: dict[str, list[str]] = {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        for name in required:
            if not _specifies(container.get("resources") or {}, name):
                missing.setdefault(name, []).append(container.get("name", ""))
    return "; ".join(f"{name} for: {','.join(sorted(set(who)))}" for name, who in sorted(missing.items()))


def _specifies(resources: Object, name: str) -> bool:
    kind, _, bare = name.rpartition(".")
    return bare in (resources.get(kind or "requests") or {})
