"""LimitRanger: defaults and bounds of a namespace for what its pods and claims ask for.

Upstream: plugin/pkg/admission/limitranger/admission.go. The bounds are in `limits.py`.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.kinds import LIMIT_RANGES
from tetrapod.core.admission.limits import claim_complaints, pod_complaints
from tetrapod.core.admission.pod_plugin import object_of, spec_of
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import Object

_ANNOTATION: Final = "kubernetes.io/limit-ranger"


class LimitRanger(Plugin):
    name = "LimitRanger"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._ranges = Lister(storages, LIMIT_RANGES)

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        if group:
            return False
        if resource == "pods":
            # Containers of a pod change through resize alone.
            return not attributes.subresource if attributes.operation == "CREATE" else attributes.subresource == "resize"
        return resource == "persistentvolumeclaims" and not attributes.subresource

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.resource != "pods" or attributes.operation != "CREATE":
            return
        for found in await self._ranges.list(attributes.namespace):
            _set_defaults(object_of(attributes), spec_of(attributes), found)

    async def validate(self, attributes: Attributes) -> None:
        obj = object_of(attributes)
        if obj["metadata"].get("deletionTimestamp") and attributes.operation == "UPDATE":
            return
        check = pod_complaints if attributes.resource.resource == "pods" else claim_complaints
        for found in await self._ranges.list(attributes.namespace):
            complaints = list(dict.fromkeys(check((found.get("spec") or {}).get("limits") or [], spec_of(attributes))))
            if complaints:
                raise forbidden(attributes, complaints[0] if len(complaints) == 1 else f"[{', '.join(complaints)}]")


def _set_defaults(pod: Object, spec: Object, limit_range: Object) -> None:
    requests: Object = {}
    limits: Object = {}
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            requests.update(item.get("defaultRequest") or {})
            limits.update(item.get("default") or {})
    if not requests and not limits:
        return
    told: list[str] = []
    for kind, containers in (("container", spec.get("containers")), ("init container", spec.get("initContainers"))):
        for container in containers or ():
            told += _fill(container, kind, requests, limits)
    if told:
        annotations = {**(pod["metadata"].get("annotations") or {})}
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(told)}"
        pod["metadata"]["annotations"] = annotations


def _fill(container: Object, kind: str, requests: Object, limits: Object) -> list[str]:
    """Returns what was set, in words."""
    resources = container.setdefault("resources", {})
    told = []
    for part, defaults in (("requests", requests), ("limits", limits)):
        missing = sorted(defaults.keys() - (resources.get(part) or {}).keys())
        if missing:
            resources[part] = {**(resources.get(part) or {}), **{name: defaults[name] for name in missing}}
            told.append(f"{', '.join(missing)} {part[:-1]} for {kind} {container.get('name') or ''}")
    return told
