"""The resources that a pod's containers must specify under a quota.

Upstream: pkg/quota/v1/evaluator/core/pods.go, Constraints.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tetrapod.core.quota.pods import has_pod_level_resources
from tetrapod.machinery.gvk import Object

_MUST_SPECIFY: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})


def unspecified_resources(pod: Object, hard: Iterable[str]) -> str:
    """Return the limited resources that containers do not specify, as in `cpu for: a,b; limits.memory for: a`.

    Args:
        pod: the pod.
        hard: the quota's resource names.

    Returns:
        "" if all are specified, or if the pod has resources at pod level.
    """
    required = sorted(_MUST_SPECIFY & set(hard))
    if not required or has_pod_level_resources(pod):
        return ""
    spec = pod.get("spec") or {}
    missing: dict[str, list[str]] = {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        for name in required:
            if not _specifies(container.get("resources") or {}, name):
                missing.setdefault(name, []).append(container.get("name", ""))
    return "; ".join(
        f"{name} for: {','.join(sorted(set(container_names)))}" for name, container_names in sorted(missing.items())
    )


def _specifies(resources: Object, name: str) -> bool:
    """Return whether the container has the request or limit that the quota name counts; `cpu` means `requests.cpu`."""
    kind, _, bare = name.rpartition(".")
    return bare in (resources.get(kind or "requests") or {})
