"""Charging one write to one quota: what it must specify, what it would use, and why that is too much.

Upstream: k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go (CheckRequest) and the pod evaluator's Constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tetrapod.core.quota.pods import Usage, says_resources
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_MUST_SPECIFY: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_ZERO: Final = Quantity.from_int(0)


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


def uncounted(quota: Object, names: Iterable[str]) -> str:
    """The refusal's text where the quota does not know yet what is used of these."""
    used = (quota.get("status") or {}).get("used") or {}
    names = sorted(names)
    if all(name in used for name in names):
        return ""
    return f"status unknown for quota: {quota['metadata']['name']}, resources: {','.join(names)}"


def exceeded(quota: Object, delta: Usage) -> str:
    """The refusal's text; "" where the quota has room."""
    status = quota.get("status") or {}
    hard, used = _quantities(status.get("hard")), _quantities(status.get("used"))
    name = quota["metadata"]["name"]
    over = sorted(k for k, v in delta.items() if k in hard and used.get(k, _ZERO) + v > hard[k])
    if not over:
        return ""
    requested = ",".join(f"{k}={delta[k]}" for k in over)
    return (
        f"exceeded quota: {name}, requested: {requested}, used: {','.join(f'{k}={used[k]}' for k in over if k in used)}, "
        f"limited: {','.join(f'{k}={hard[k]}' for k in over)}"
    )


def charged(quota: Object, delta: Usage) -> dict[str, str] | None:
    """The quota's usage with the delta; None where nothing of it is the quota's."""
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, _quantities(status.get("used"))
    changes = {k: used.get(k, _ZERO) + v for k, v in delta.items() if k in hard}
    if not changes:
        return None
    return {k: str(v) for k, v in {**used, **changes}.items()}


def growth(new: Usage, old: Usage) -> Usage:
    """What is used no more is credited by the quota controller."""
    return {k: more for k, v in new.items() if (more := v - old.get(k, _ZERO)).sign > 0}


def _quantities(listed: Mapping[str, Any] | None) -> Usage:
    return {name: Quantity.of(value) for name, value in (listed or {}).items()}
