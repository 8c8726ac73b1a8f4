"""PodResizeValidator, which checks the node of a pod that is resized, and the base class of plugins that do so."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.admission.kinds import NODES
from tetrapod.core.admission.pod_plugin import object_of
from tetrapod.core.podspec.pod_resources import amounts, pod_amounts
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity
from tetrapod.machinery.status import StatusError

_OS: Final = "kubernetes.io/os"


class ResizePlugin(Plugin):
    """The base class of plugins that check updates of the subresource `pods/resize`."""

    operations = frozenset({"UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self.nodes = Lister(storages, NODES)

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.resource == "pods"
            and not attributes.resource.group
            and attributes.subresource == "resize"
        )

    async def node(self, attributes: Attributes) -> Object | None:
        """Return the pod's node, or None if the pod is not assigned to a node or its generation is unchanged.

        Raises:
            StatusError: 403, the node does not exist.
        """
        pod, old = object_of(attributes), attributes.old_object or {}
        name = (pod.get("spec") or {}).get("nodeName")
        if not name or pod["metadata"].get("generation") == (old.get("metadata") or {}).get("generation"):
            return None
        node = await self.nodes.get("", name)
        if node is None:
            raise forbidden(attributes, f"node {go_quote(name)} not found")
        return node


class PodResizeValidator(ResizePlugin):
    """The plugin that rejects resizes on nodes that are not Linux nodes or have too little allocatable cpu or memory.

    It compares the pod's requests with the whole allocatable amount, regardless of other pods on the node.
    """

    name = "PodResizeValidator"

    async def validate(self, attributes: Attributes) -> None:
        node = await self.node(attributes)
        if node is None:
            return
        operating_system = (node["metadata"].get("labels") or {}).get(_OS, "linux")
        if operating_system != "linux":
            text = (
                f"pod resize is only supported on linux nodes, node {go_quote(node['metadata']['name'])} is "
                f"{go_quote(operating_system)}"
            )
            raise _with_cause(forbidden(attributes, text), "UnsupportedPlatform")
        allocatable = (node.get("status") or {}).get("allocatable")
        shortage = await offloaded(attributes.large, _shortage, object_of(attributes)["spec"], allocatable)
        if shortage:
            raise _with_cause(
                forbidden(attributes, f"node didn't have enough allocatable resources: {shortage}"), "NodeCapacity"
            )


def _shortage(spec: Object, allocatable: Any) -> str:
    """Return a text that lists the cpu and memory requests above the allocatable amounts, or "" if all fit.

    Args:
        spec: the spec of a pod.
        allocatable: status.allocatable of the node, or None.
    """
    requests, available = pod_amounts(spec, "requests"), amounts(allocatable)
    zero, parts = Quantity.of("0"), []
    for name in ("cpu", "memory"):
        requested, allocatable_amount = requests.get(name, zero), available.get(name, zero)
        if requested > allocatable_amount:
            values = [
                amount.milli_value if name == "cpu" else amount.value for amount in (requested, allocatable_amount)
            ]
            parts.append(f"{name}, requested: {values[0]}, allocatable: {values[1]}")
    return "; ".join(parts)


def _with_cause(error: StatusError, reason: str) -> StatusError:
    """Set details.causes of the error to a single cause with this reason, in place, and return the error."""
    error.details = {**(error.details or {}), "causes": [{"reason": reason}]}
    return error
