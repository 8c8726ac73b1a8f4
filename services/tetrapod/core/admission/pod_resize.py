"""What a node must have for a pod on it to be resized: room, Linux, and the features that the change takes."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.admission.kinds import NODES
from tetrapod.core.admission.pod_plugin import object_of
from tetrapod.core.resources_of import amounts, pod_amounts
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity
from tetrapod.machinery.status import StatusError

_POD_LEVEL: Final = "InPlacePodLevelResourcesVerticalScaling"
_INIT: Final = "InPlacePodVerticalScalingInitContainers"
_OS: Final = "kubernetes.io/os"


class _ResizePlugin(Plugin):
    operations = frozenset({"UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._nodes = Lister(storages, NODES)

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.resource == "pods" and not attributes.resource.group and attributes.subresource == "resize"

    async def _node(self, attributes: Attributes) -> Object | None:
        """None for a pod that has no node yet, or that does not change."""
        pod, old = object_of(attributes), attributes.old_object or {}
        name = (pod.get("spec") or {}).get("nodeName")
        if not name or pod["metadata"].get("generation") == (old.get("metadata") or {}).get("generation"):
            return None
        found = await self._nodes.get("", name)
        if found is None:
            raise forbidden(attributes, f"node {go_quote(name)} not found")
        return found


class PodResizeValidator(_ResizePlugin):
    """Refuses what the node could never give, whatever else runs on it."""

    name = "PodResizeValidator"

    async def validate(self, attributes: Attributes) -> None:
        node = await self._node(attributes)
        if node is None:
            return
        system = (node["metadata"].get("labels") or {}).get(_OS, "linux")
        if system != "linux":
            text = f"pod resize is only supported on linux nodes, node {go_quote(node['metadata']['name'])} is {go_quote(system)}"
            raise _because(forbidden(attributes, text), "UnsupportedPlatform")
        lacking = _lacking(object_of(attributes)["spec"], (node.get("status") or {}).get("allocatable"))
        if lacking:
            raise _because(forbidden(attributes, f"node didn't have enough allocatable resources: {lacking}"), "NodeCapacity")


def _lacking(spec: Object, allocatable: Any) -> str:
    wanted, there = pod_amounts(spec, "requests"), amounts(allocatable)
    zero, parts = Quantity.of("0"), []
    for name in ("cpu", "memory"):
        asked, has = wanted.get(name, zero), there.get(name, zero)
        if asked > has:
            shown = [amount.milli_value if name == "cpu" else amount.value for amount in (asked, has)]
            parts.append(f"{name}, requested: {shown[0]}, allocatable: {shown[1]}")
    return "; ".join(parts)


def _because(error: StatusError, reason: str) -> StatusError:
    error.details = {**(error.details or {}), "causes": [{"reason": reason}]}
    return error


class NodeDeclaredFeatureValidator(_ResizePlugin):
    """A change that takes a feature waits for a node that declares it."""

    name = "NodeDeclaredFeatureValidator"

    async def validate(self, attributes: Attributes) -> None:
        new, old = (o.get("spec") or {} for o in (object_of(attributes), attributes.old_object or {}))
        wanted = [_POD_LEVEL] if _level(new.get("resources")) != _level(old.get("resources")) else []
        init = zip(new.get("initContainers") or (), old.get("initContainers") or (), strict=False)
        if any(_level(now.get("resources")) != _level(had.get("resources")) for now, had in init if had.get("restartPolicy") != "Always"):
            wanted.append(_INIT)
        if not wanted or (node := await self._node(attributes)) is None:
            return
        lacking = [name for name in wanted if name not in ((node.get("status") or {}).get("declaredFeatures") or ())]
        if lacking:
            on = f"which are not available on node {go_quote(node['metadata']['name'])}"
            raise forbidden(attributes, f"pod update requires features {', '.join(lacking)} {on}")


def _level(resources: Object | None) -> list[dict[str, Quantity]]:
    return [amounts((resources or {}).get(kind)) for kind in ("requests", "limits")]
