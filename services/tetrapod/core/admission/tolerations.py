"""DefaultTolerationSeconds, ExtendedResourceToleration and TaintNodesByCondition: where pods may go and stay, and that new nodes
begin unready. Upstream: plugin/pkg/admission/{defaulttolerationseconds,extendedresourcetoleration,nodetaint}.
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
    """How many seconds pods stay on a node that is not ready, and on one that is out of reach."""

    name = "DefaultTolerationSeconds"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, not_ready: int, unreachable: int) -> None:
        self._seconds = {NOT_READY: not_ready, UNREACHABLE: unreachable}

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        found = spec.get("tolerations") or []
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key, seconds in self._seconds.items()
            if not _tolerates(found, key)
        ]
        if added:
            spec["tolerations"] = [*found, *added]


def _tolerates(tolerations: list[Object], key: str) -> bool:
    return any((t.get("key") or "") in ("", key) and (t.get("effect") or "") in ("", "NoExecute") for t in tolerations)


class ExtendedResourceToleration(PodPlugin):
    """Who asks for a device may go to the nodes that are kept for it. Off by default."""

    name = "ExtendedResourceToleration"
    operations = frozenset({"CREATE", "UPDATE"})

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        asking = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        wanted = {name for one in asking for name in (one.get("resources") or {}).get("requests") or () if is_extended(name)}
        for key in sorted(wanted):
            added = {"key": key, "operator": "Exists", "effect": "NoSchedule"}
            found = spec.get("tolerations") or []
            alike = [added if _alike(one, added) else one for one in found]
            spec["tolerations"] = alike if added in alike else [*alike, added]


def _alike(one: Object, other: Object) -> bool:
    return all((one.get(part) or "") == (other.get(part) or "") for part in ("key", "operator", "effect", "value"))


class TaintNodesByCondition(Plugin):
    name = "TaintNodesByCondition"
    operations = frozenset({"CREATE"})

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.resource == "nodes" and not attributes.resource.group and not attributes.subresource

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        taints = spec.get("taints") or []
        if not any(t.get("key") == NOT_READY and t.get("effect") == "NoSchedule" for t in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
