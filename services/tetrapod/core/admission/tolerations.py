"""DefaultTolerationSeconds, ExtendedResourceToleration and TaintNodesByCondition.

Upstream: plugin/pkg/admission/{defaulttolerationseconds,extendedresourcetoleration,nodetaint}.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.pod_plugin import PodPlugin, spec_of
from tetrapod.core.validation.quantities import is_extended
from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.machinery.gvk import Object

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"


class DefaultTolerationSeconds(PodPlugin):
    """The plugin that adds tolerations of the taints not-ready and unreachable to pods that have none for them.

    The tolerations have the effect NoExecute.

    Args:
        not_ready: tolerationSeconds for the taint node.kubernetes.io/not-ready.
        unreachable: tolerationSeconds for the taint node.kubernetes.io/unreachable.
    """

    name = "DefaultTolerationSeconds"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, not_ready: int, unreachable: int) -> None:
        self._seconds = {NOT_READY: not_ready, UNREACHABLE: unreachable}

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        existing = spec.get("tolerations") or []
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key, seconds in self._seconds.items()
            if not _tolerates(existing, key)
        ]
        if added:
            spec["tolerations"] = [*existing, *added]


def _tolerates(tolerations: list[Object], key: str) -> bool:
    """Return whether one of the tolerations applies to the NoExecute taint with this key, for any number of seconds."""
    return any((t.get("key") or "") in ("", key) and (t.get("effect") or "") in ("", "NoExecute") for t in tolerations)


class ExtendedResourceToleration(PodPlugin):
    """The plugin that adds a NoSchedule toleration for each extended resource that a pod requests.

    The key of the toleration is the name of the resource. The plugin is off by default.
    """

    name = "ExtendedResourceToleration"
    operations = frozenset({"CREATE", "UPDATE"})

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        extended_resources = {
            name
            for existing in containers
            for name in (existing.get("resources") or {}).get("requests") or ()
            if is_extended(name)
        }
        for key in sorted(extended_resources):
            added = {"key": key, "operator": "Exists", "effect": "NoSchedule"}
            tolerations = spec.get("tolerations") or []
            replaced = [added if _alike(existing, added) else existing for existing in tolerations]
            spec["tolerations"] = replaced if added in replaced else [*replaced, added]


def _alike(one: Object, other: Object) -> bool:
    """Return whether two tolerations are equal, not counting tolerationSeconds."""
    return all((one.get(part) or "") == (other.get(part) or "") for part in ("key", "operator", "effect", "value"))


class TaintNodesByCondition(Plugin):
    """The plugin that adds the taint `node.kubernetes.io/not-ready:NoSchedule` to new nodes."""

    name = "TaintNodesByCondition"
    operations = frozenset({"CREATE"})

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.resource == "nodes" and not attributes.resource.group and not attributes.subresource

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        taints = spec.get("taints") or []
        if not any(t.get("key") == NOT_READY and t.get("effect") == "NoSchedule" for t in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
