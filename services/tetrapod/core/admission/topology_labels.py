"""PodTopologyLabels: copies zone and region labels of the node to the pod.

Upstream: plugin/pkg/admission/podtopologylabels.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.kinds import NODES
from tetrapod.core.admission.pod_plugin import object_of
from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory

_COPIED: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    """The plugin that copies the node's zone and region labels to pods and bindings.

    It handles pods that are created with a node name, and bindings, whose labels the pod inherits.
    """

    name = "PodTopologyLabels"
    operations = frozenset({"CREATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._nodes = Lister(storages, NODES)

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        handled = resource == "bindings" or (resource == "pods" and attributes.subresource in ("", "binding"))
        return not group and handled and feature_gates.enabled("PodTopologyLabelsAdmission")

    async def admit(self, attributes: Attributes) -> None:
        obj = object_of(attributes)
        pod = attributes.resource.resource == "pods" and not attributes.subresource
        name = (obj.get("spec") or {}).get("nodeName") if pod else (obj.get("target") or {}).get("name")
        node = await self._nodes.get("", name) if name else None
        labels = ((node or {}).get("metadata") or {}).get("labels") or {}
        copied = {key: labels[key] for key in _COPIED if key in labels}
        if copied:
            obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), **copied}
