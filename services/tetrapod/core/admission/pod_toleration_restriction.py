"""PodTolerationRestriction, off by default: which taints pods of a namespace tolerate anyway, and which they may.

By the namespace's annotations, else as is configured for all. Upstream: plugin/pkg/admission/podtolerationrestriction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tetrapod.core.admission.kinds import NAMESPACES
from tetrapod.core.admission.pod_plugin import PodPlugin, object_of, spec_of
from tetrapod.core.admission.toleration_merging import all_covered, merged
from tetrapod.core.qos import qos_class
from tetrapod.core.validation.scheduling import tolerations as validate_tolerations
from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.shapes import kind, list_of
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.patch.goformat import json_kind
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.serializer import json
from tetrapod.machinery.shapes.node import SchemaNode
from tetrapod.machinery.status import StatusError, not_found
from tetrapod.machinery.types import load as load_type

DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
WHITELIST: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_GROUP_VERSION: Final = "podtolerationrestriction.admission.k8s.io/v1alpha1"
_TOLERATION: Final = "io.k8s.api.core.v1.Toleration"
_MEMORY_PRESSURE: Final[Object] = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Tolerations:
    """Of all namespaces that say nothing themselves."""

    default: list[Object] = field(default_factory=list)
    whitelist: list[Object] = field(default_factory=list)


def read_tolerations(data: bytes | None) -> Tolerations:
    """
    Raises:
        ValueError: with upstream's text.
    """
    if data is None:
        return Tolerations()
    listed = _shape()
    config = load(data, {(_GROUP_VERSION, "Configuration"): kind("v1alpha1.Configuration", default=listed, whitelist=listed)}, strict=False)
    found = Tolerations(config.get("default") or [], config.get("whitelist") or [])
    errors = validate_tolerations(found.default, "podtolerationrestriction.default")
    errors += validate_tolerations(found.whitelist, "podtolerationrestriction.whitelist")
    if errors:
        raise ValueError(f"invalid config: [{' '.join(map(str, errors))}]")
    return found


class PodTolerationRestriction(PodPlugin):
    name = "PodTolerationRestriction"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, storages: StorageFactory, everywhere: Tolerations) -> None:
        self._namespaces = Lister(storages, NAMESPACES)
        self._everywhere = everywhere

    async def admit(self, attributes: Attributes) -> None:
        added: list[Object] = []
        if attributes.operation == "CREATE":
            own = await self._said(attributes, DEFAULTS)
            added = self._everywhere.default if own is None else own
        if _quality(object_of(attributes)) != "BestEffort":
            added = [*added, _MEMORY_PRESSURE]
        if added:
            spec = spec_of(attributes)
            spec["tolerations"] = merged(spec.get("tolerations") or [], added)
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        tolerated = spec_of(attributes).get("tolerations") or []
        if not tolerated:
            return
        own = await self._said(attributes, WHITELIST)
        allowed, whose = (self._everywhere.whitelist, "cluster") if own is None else (own, "namespace")
        if allowed and not all_covered(tolerated, allowed):
            conflict = f"conflict with its {whose} whitelist"
            raise StatusError(500, "", f"pod tolerations (possibly merged with namespace default tolerations) {conflict}")

    async def _said(self, attributes: Attributes, annotation: str) -> list[Object] | None:
        """By the namespace; None where it says nothing."""
        name = attributes.namespace
        namespace = await self._namespaces.find("", name)
        if namespace is None:
            raise not_found(GroupResource("", "namespaces"), name)
        text = (namespace["metadata"].get("annotations") or {}).get(annotation)
        if not text:
            return None if text is None else []
        return _read(text)


def _read(text: str) -> list[Object]:
    """
    Raises:
        StatusError: 500, as upstream answers what is no refusal.
    """
    try:
        found: Any = json.decode(text.encode()).obj
        if not isinstance(found, list | None):
            raise ValueError(f"json: cannot unmarshal {json_kind(found)} into Go value of type []v1.Toleration")
        return [_toleration(one) for one in found or ()]
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


def _quality(pod: Object) -> str:
    """As the kubelet has told it, or as follows from what the pod asks for."""
    return (pod.get("status") or {}).get("qosClass") or qos_class(pod.get("spec") or {})
