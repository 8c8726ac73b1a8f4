"""PodResizeValidator and NodeDeclaredFeatureValidator, which check the node of a pod that is resized.

The node must be a Linux node, have enough allocatable resources and declare the features that the change needs.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.admission.kinds import NODES
from tetrapod.core.admission.pod_plugin import object_of
from tetrapod.core.podspec.pod_resources import amounts, pod_amounts
from tetrapod.core.v1.pods.resize_volumes import GATE, MEMORY, changes_limit
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity
from tetrapod.machinery.status import StatusError

_POD_LEVEL: Final = "InPlacePodLevelResourcesVerticalScaling"
_INIT: Final = "InPlacePodVerticalScalingInitContainers"
_OS: Final = "kubernetes.io/os"


class _ResizePlugin(Plugin):
    """The base class of plugins that check updates of the subresource `pods/resize`."""

    operations = frozenset({"UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._nodes = Lister(storages, NODES)

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.resource == "pods"
            and not attributes.resource.group
            and attributes.subresource == "resize"
        )

    async def _node(self, attributes: Attributes) -> Object | None:
        """Return the pod's node, or None if the pod is not assigned to a node or its generation is unchanged.

        Raises:
            StatusError: 403, the node does not exist.
        """
        pod, old = object_of(attributes), attributes.old_object or {}
        name = (pod.get("spec") or {}).get("nodeName")
        if not name or pod["metadata"].get("generation") == (old.get("metadata") or {}).get("generation"):
            return None
        node = await self._nodes.get("", name)
        if node is None:
            raise forbidden(attributes, f"node {go_quote(name)} not found")
        return node


class PodResizeValidator(_ResizePlugin):
    """The plugin that rejects resizes on nodes that are not Linux nodes or have too little allocatable cpu or memory.

    It compares the pod's requests with the whole allocatable amount, regardless of other pods on the node.
    """

    name = "PodResizeValidator"

    async def validate(self, attributes: Attributes) -> None:
        node = await self._node(attributes)
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


class NodeDeclaredFeatureValidator(_ResizePlugin):
    """The plugin that rejects resizes which need a feature that the node does not declare.

    There is one for pod-level resources, one for init containers that are not sidecars, and one for volumes in memory.
    """

    name = "NodeDeclaredFeatureValidator"

    async def validate(self, attributes: Attributes) -> None:
        new, old = (o.get("spec") or {} for o in (object_of(attributes), attributes.old_object or {}))
        required = await offloaded(attributes.large, _required_features, new, old)
        if not required or (node := await self._node(attributes)) is None:
            return
        missing = [name for name in required if name not in ((node.get("status") or {}).get("declaredFeatures") or ())]
        if missing:
            explanation = f"which are not available on node {go_quote(node['metadata']['name'])}"
            raise forbidden(attributes, f"pod update requires features {', '.join(missing)} {explanation}")


def _required_features(new: Object, old: Object) -> list[str]:
    """Return the features that the node must declare for a resize.

    Args:
        new: the new pod spec.
        old: the stored pod spec.
    """
    required = (
        [_POD_LEVEL] if _requests_and_limits(new.get("resources")) != _requests_and_limits(old.get("resources")) else []
    )
    init_pairs = zip(new.get("initContainers") or (), old.get("initContainers") or (), strict=False)
    if any(
        _requests_and_limits(new_container.get("resources")) != _requests_and_limits(old_container.get("resources"))
        for new_container, old_container in init_pairs
        if old_container.get("restartPolicy") != "Always"
    ):
        required.append(_INIT)
    if _resizes_volumes(new.get("volumes") or [], old.get("volumes") or []):
        required.append(GATE)
    return required


def _resizes_volumes(new: list[Object], old: list[Object]) -> bool:
    """Return whether the size limit of an emptyDir volume in memory changes.

    Args:
        new: the volumes of the new pod spec.
        old: those of the stored one.
    """
    if len(new) != len(old):
        return False
    return any(
        changes_limit(volume["emptyDir"].get("sizeLimit"), (old_volume.get("emptyDir") or {}).get("sizeLimit"))
        for volume, old_volume in zip(new, old, strict=True)
        if volume.get("name") == old_volume.get("name") and (volume.get("emptyDir") or {}).get("medium") == MEMORY
    )


def _requests_and_limits(resources: Object | None) -> list[dict[str, Quantity]]:
    """Return the requests and the limits, in this order, with parsed quantities, so that `1` equals `1000m`.

    Args:
        resources: ResourceRequirements; None for two empty dictionaries.
    """
    return [amounts((resources or {}).get(kind)) for kind in ("requests", "limits")]
