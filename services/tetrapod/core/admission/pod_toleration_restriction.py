"""PodTolerationRestriction, off by default: adds default tolerations to pods and limits tolerations to a whitelist.

Both come from annotations of the namespace, else from the configuration. Upstream:
plugin/pkg/admission/podtolerationrestriction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tetrapod.core.admission.kinds import NAMESPACES
from tetrapod.core.admission.pod_plugin import PodPlugin, object_of, spec_of
from tetrapod.core.admission.toleration_merging import all_covered, merged
from tetrapod.core.podspec.qos import qos_class
from tetrapod.core.podspec.scheduling import tolerations as validate_tolerations
from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.schemas import kind, list_of
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.golang.formatting import json_kind
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import json
from tetrapod.machinery.status import StatusError, not_found
from tetrapod.machinery.types import load as load_type

DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
WHITELIST: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_GROUP_VERSION: Final = "podtolerationrestriction.admission.k8s.io/v1alpha1"
_TOLERATION: Final = "io.k8s.api.core.v1.Toleration"
_MEMORY_PRESSURE: Final[Object] = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}


@dataclass(frozen=True, slots=True)
class Tolerations:
    """The tolerations of the configuration file, which apply to namespaces without the annotations.

    Attributes:
        default: tolerations to add to new pods.
        whitelist: tolerations that pods may have; if it is empty, they may have all.
    """

    default: list[Object] = field(default_factory=list)
    whitelist: list[Object] = field(default_factory=list)


def read_tolerations(data: bytes | None) -> Tolerations:
    """Return the tolerations of the configuration file; both lists are empty without a file (`data` is None).

    Raises:
        ValueError: the file is invalid; with upstream's text.
    """
    if data is None:
        return Tolerations()
    toleration_list = _shape()
    config = load(
        data,
        {
            (_GROUP_VERSION, "Configuration"): kind(
                "v1alpha1.Configuration", default=toleration_list, whitelist=toleration_list
            )
        },
        strict=False,
    )
    tolerations = Tolerations(config.get("default") or [], config.get("whitelist") or [])
    errors = validate_tolerations(tolerations.default, "podtolerationrestriction.default")
    errors += validate_tolerations(tolerations.whitelist, "podtolerationrestriction.whitelist")
    if errors:
        raise ValueError(f"invalid config: [{' '.join(map(str, errors))}]")
    return tolerations


class PodTolerationRestriction(PodPlugin):
    """The plugin that adds tolerations to pods and rejects pods with a toleration that the whitelist does not cover.

    Default tolerations and whitelist are those in the namespace's annotations or, without an annotation, those in the
    configuration file. Pods that are not BestEffort also get a toleration of memory pressure.

    Args:
        storages: the storage of namespaces.
        configured: the tolerations of the configuration file.
    """

    name = "PodTolerationRestriction"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, storages: StorageFactory, configured: Tolerations) -> None:
        self._namespaces = Lister(storages, NAMESPACES)
        self._configured = configured

    async def admit(self, attributes: Attributes) -> None:
        added: list[Object] = []
        if attributes.operation == "CREATE":
            namespace_defaults = await self._from_annotation(attributes, DEFAULTS)
            added = self._configured.default if namespace_defaults is None else namespace_defaults
        if await offloaded(attributes.large, _qos_class, object_of(attributes)) != "BestEffort":
            added = [*added, _MEMORY_PRESSURE]
        if added:
            spec = spec_of(attributes)
            spec["tolerations"] = await offloaded(attributes.large, merged, spec.get("tolerations") or [], added)
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        tolerated = spec_of(attributes).get("tolerations") or []
        if not tolerated:
            return
        namespace_whitelist = await self._from_annotation(attributes, WHITELIST)
        allowed, owner = (
            (self._configured.whitelist, "cluster")
            if namespace_whitelist is None
            else (namespace_whitelist, "namespace")
        )
        if allowed and not await offloaded(attributes.large, all_covered, tolerated, allowed):
            detail = f"conflict with its {owner} whitelist"
            raise StatusError(500, "", f"pod tolerations (possibly merged with namespace default tolerations) {detail}")

    async def _from_annotation(self, attributes: Attributes, annotation: str) -> list[Object] | None:
        """Return the tolerations in the namespace's annotation: None without the annotation, [] if it is empty.

        Raises:
            StatusError: 404, the namespace does not exist; 500, the annotation is invalid.
        """
        name = attributes.namespace
        namespace = await self._namespaces.find("", name)
        if namespace is None:
            raise not_found(GroupResource("", "namespaces"), name)
        text = (namespace["metadata"].get("annotations") or {}).get(annotation)
        if not text:
            return None if text is None else []
        return _read(text)


def _read(text: str) -> list[Object]:
    """Parse the JSON list of tolerations in an annotation.

    Raises:
        StatusError: 500, it is invalid. Upstream returns 500 for errors without a status.
    """
    try:
        decoded: Any = json.decode(text.encode()).obj
        if not isinstance(decoded, list | None):
            raise ValueError(f"json: cannot unmarshal {json_kind(decoded)} into Go value of type []v1.Toleration")
        return [_toleration(toleration) for toleration in decoded or ()]
    except (ValueError, typed.DecodeError) as error:
        raise StatusError(500, "", str(error)) from None


def _toleration(value: Any) -> Object:
    if not isinstance(value, dict | None):
        raise ValueError(f"json: cannot unmarshal {json_kind(value)} into Go value of type v1.Toleration")
    toleration: Object = value or {}
    typed.decode(load_type(_TOLERATION), toleration)
    return toleration


def _shape() -> SchemaNode:
    return list_of(load_type(_TOLERATION))


def _qos_class(pod: Object) -> str:
    """Return the QoS class: the one in the pod's status, or else the one that follows from its spec."""
    return (pod.get("status") or {}).get("qosClass") or qos_class(pod.get("spec") or {})
