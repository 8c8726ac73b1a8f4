"""NodeDeclaredFeatureValidator, which checks that nodes declare the features that pods and devices need.

Upstream: plugin/pkg/admission/nodedeclaredfeatures/admission.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.pod_plugin import object_of
from tetrapod.core.admission.pod_resize import ResizePlugin
from tetrapod.core.podspec.node_matching import NodeMatcher
from tetrapod.core.podspec.pod_resources import amounts
from tetrapod.core.resource.conversion import convert_slice
from tetrapod.core.v1.pods.resize_validation import INIT_GATE, POD_LEVEL_GATE
from tetrapod.core.v1.pods.resize_volumes import GATE, MEMORY, changes_limit
from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity
from tetrapod.machinery.status import bad_request

_NODE_RESOURCES: Final = "DRANodeAllocatableResources"
_MANY_NODES: Final = 100
"""The number of nodes beyond which they are matched in a thread."""
_SLICES: Final = ("resource.k8s.io", "resourceslices")


class NodeDeclaredFeatureValidator(ResizePlugin):
    """The plugin that rejects writes which need a feature that a node does not declare.

    Resizes may need one for pod-level resources, one for init containers that are not sidecars, and one for volumes in
    memory. Devices that provide or use resources of nodes need one of each node that can access them.
    """

    name = "NodeDeclaredFeatureValidator"
    operations = frozenset({"CREATE", "UPDATE"})

    def handles(self, attributes: Attributes) -> bool:
        if not feature_gates.enabled("NodeDeclaredFeatures"):
            return False
        group, _, resource = attributes.resource
        if (group, resource) == _SLICES:
            return not attributes.subresource and feature_gates.enabled(_NODE_RESOURCES)
        return attributes.operation == "UPDATE" and super().handles(attributes)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.resource == _SLICES[1]:
            await self._validate_slice(attributes)
            return
        new, old = (o.get("spec") or {} for o in (object_of(attributes), attributes.old_object or {}))
        required = await offloaded(attributes.large, _required_features, new, old)
        if not required or (node := await self.node(attributes)) is None:
            return
        missing = [name for name in required if not _declares(node, name)]
        if missing:
            explanation = f"which are not available on node {go_quote(node['metadata']['name'])}"
            raise forbidden(attributes, f"pod update requires features {', '.join(missing)} {explanation}")

    async def _validate_slice(self, attributes: Attributes) -> None:
        """Check the nodes of each device of a slice that provides or uses resources of nodes.

        Raises:
            StatusError: 403, a node does not exist or does not declare the feature, or a device has no node; 400, a
                selector of nodes is invalid.
        """
        spec = convert_slice(attributes.object or {}, "v1").get("spec") or {}
        devices = [device for device in spec.get("devices") or () if device.get("nodeAllocatableResources")]
        if not devices:
            return
        undeclared = [node for node in await self.nodes.list() if not _declares(node, _NODE_RESOURCES)]
        chosen = bool(spec.get("perDeviceNodeSelection"))
        for device in devices if chosen else devices[:1]:
            holder, quoted = device if chosen else spec, go_quote(device.get("name") or "")
            if name := holder.get("nodeName"):
                node = await self.nodes.get("", name)
                if node is None:
                    raise forbidden(attributes, f"node {go_quote(name)} not found for device {quoted}")
                node = None if _declares(node, _NODE_RESOURCES) else node
            elif (selector := holder.get("nodeSelector")) is not None:
                node = await offloaded(len(undeclared) > _MANY_NODES, _first_match, selector, undeclared)
            elif holder.get("allNodes"):
                node = next(iter(undeclared), None)
            else:
                text = f"device {quoted} in ResourceSlice has NodeAllocatableResources but does not map to any nodes"
                raise forbidden(attributes, text)
            if node is not None:
                name = go_quote(node["metadata"]["name"])
                raise forbidden(attributes, f"node {name} does not support {_NODE_RESOURCES} feature")


def _first_match(selector: Object, nodes: list[Object]) -> Object | None:
    """Return the first of `nodes` that a NodeSelector matches, or None.

    Raises:
        StatusError: 400, the selector is invalid.
    """
    try:
        matcher = NodeMatcher(selector)
    except ValueError as error:
        raise bad_request(f"failed to create node selector: {error}") from None
    return next(filter(matcher.matches, nodes), None)


def _declares(node: Object, feature: str) -> bool:
    return feature in ((node.get("status") or {}).get("declaredFeatures") or ())


def _required_features(new: Object, old: Object) -> list[str]:
    """Return the features that the node must declare for a resize.

    Args:
        new: the new pod spec.
        old: the stored pod spec.
    """
    required = (
        [POD_LEVEL_GATE]
        if _requests_and_limits(new.get("resources")) != _requests_and_limits(old.get("resources"))
        else []
    )
    init_pairs = zip(new.get("initContainers") or (), old.get("initContainers") or (), strict=False)
    if any(
        _requests_and_limits(new_container.get("resources")) != _requests_and_limits(old_container.get("resources"))
        for new_container, old_container in init_pairs
        if old_container.get("restartPolicy") != "Always"
    ):
        required.append(INIT_GATE)
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
