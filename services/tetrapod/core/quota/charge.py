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


def exceeded(quota: Object, delta: Usage) -> str:
    """The refusal's text; "" where the quota has room. Only what grows is looked at."""
    status = quota.get("status") or {}
    hard, used = _quantities(status.get("hard")), _quantities(status.get("used"))
    name = quota["metadata"]["name"]
    growing = {k: v for k, v in delta.items() if v.sign > 0 and k in hard}
    unknown = sorted(k for k in growing if k not in used)
    if unknown:
        return f"status unknown for quota: {name}, resources: {','.join(unknown)}"
    over = sorted(k for k, v in growing.items() if used[k] + v > hard[k])
    if not over:
        return ""
    requested = ",".join(f"{k}={delta[k]}" for k in over)
    return (
        f"exceeded quota: {name}, requested: {requested}, used: {','.join(f'{k}={used[k]}' for k in over)}, "
        f"limited: {','.join(f'{k}={hard[k]}' for k in over)}"
    )


def charged(quota: Object, delta: Usage) -> dict[str, str] | None:
    """The quota's usage with the delta; None where nothing of it is the quota's."""
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, _quantities(status.get("used"))
    changes = {k: used[k] + v for k, v in delta.items() if k in hard and k in used and not v.is_zero}
    if not changes:
        return None
    return {k: str(v) for k, v in {**used, **changes}.items()}


def difference(new: Usage, old: Usage) -> Usage:
    return {k: new.get(k, _ZERO) - old.get(k, _ZERO) for k in new.keys() | old.keys()}


def _quantities(listed: Mapping[str, Any] | None) -> Usage:
    return {name: Quantity.of(value) for name, value in (listed or {}).items()}
