"""DefaultTolerationSeconds, ExtendedResourceToleration and TaintNodesByCondition.

Upstream: plugin/pkg/admission/{defaulttolerationseconds,extendedresourcetoleration,nodetaint}.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final

from tetrapod.core.admission.pod_plugin import PodPlugin, spec_of
from tetrapod.core.validation.quantities import is_extended
from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.generic.scheduling.offload import offloaded
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
        await offloaded(attributes.large, _add_default_tolerations, spec, self._seconds)


def _add_default_tolerations(spec: Object, seconds_by_key: Mapping[str, int]) -> None:
    """Add a NoExecute toleration for each taint key that no toleration of the pod spec applies to, in place.

    Args:
        spec: the pod spec.
        seconds_by_key: tolerationSeconds by taint key.
    """
    existing = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for key, seconds in seconds_by_key.items()
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
        await offloaded(attributes.large, _tolerate_extended_resources, spec_of(attributes))


def _tolerate_extended_resources(spec: Object) -> None:
    """Add or replace the toleration of each extended resource that the containers request, in place."""
    containers = chain(spec.get("containers") or (), spec.get("initContainers") or ())
    extended_resources = {
        name
        for container in containers
        for name in (container.get("resources") or {}).get("requests") or ()
        if is_extended(name)
    }
    if not extended_resources:
        return
    added = {
        _identity(toleration): toleration
        for toleration in (
            {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in sorted(extended_resources)
        )
    }
    existing = [added.get(_identity(toleration), toleration) for toleration in spec.get("tolerations") or ()]
    present = set(map(_identity, existing))
    spec["tolerations"] = [*existing, *(value for identity, value in added.items() if identity not in present)]


def _identity(toleration: Object) -> tuple[str, ...]:
    """Return the fields by which two tolerations are the same: all but tolerationSeconds."""
    return tuple(toleration.get(part) or "" for part in ("key", "operator", "effect", "value"))


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
