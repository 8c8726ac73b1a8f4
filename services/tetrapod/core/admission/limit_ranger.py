"""The admission plugin LimitRanger.

It applies the defaults and checks the bounds of a namespace's LimitRanges for pods and PersistentVolumeClaims. The
bounds are in `limits.py`.
Upstream: plugin/pkg/admission/limitranger/admission.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tetrapod.core.admission.kinds import LIMIT_RANGES
from tetrapod.core.admission.limits import claim_violations, pod_violations
from tetrapod.core.admission.pod_plugin import object_of, spec_of
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.error_limits import more, record, recorded
from tetrapod.machinery.gvk import Object

_ANNOTATION: Final = "kubernetes.io/limit-ranger"


class LimitRanger(Plugin):
    """The plugin that sets default requests and limits of new pods and checks the bounds of LimitRanges.

    It checks new and resized pods, and new and updated PersistentVolumeClaims.
    """

    name = "LimitRanger"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._ranges = Lister(storages, LIMIT_RANGES)

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        if group:
            return False
        if resource == "pods":
            # Only resize changes the resources of an existing pod's containers.
            return (
                not attributes.subresource if attributes.operation == "CREATE" else attributes.subresource == "resize"
            )
        return resource == "persistentvolumeclaims" and not attributes.subresource

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.resource != "pods" or attributes.operation != "CREATE":
            return
        for limit_range in await self._ranges.list(attributes.namespace):
            await offloaded(attributes.large, _set_defaults, object_of(attributes), spec_of(attributes), limit_range)

    async def validate(self, attributes: Attributes) -> None:
        obj = object_of(attributes)
        if obj["metadata"].get("deletionTimestamp") and attributes.operation == "UPDATE":
            return
        check = pod_violations if attributes.resource.resource == "pods" else claim_violations
        for limit_range in await self._ranges.list(attributes.namespace):
            limits = (limit_range.get("spec") or {}).get("limits") or []
            if text := await offloaded(attributes.large, _violations, check, limits, spec_of(attributes)):
                raise forbidden(attributes, text)


def _violations(check: Callable[[list[Object], Object], Iterator[str]], limits: list[Object], spec: Object) -> str:
    """Return the text of all violations of bounds, shortened if there are many, or "" without violations.

    Args:
        check: yields an error text for each violated bound.
        limits: spec.limits of a LimitRange.
        spec: the spec of a pod or claim.
    """
    texts: list[str] = []
    for text in check(limits, spec):
        record(texts, text)
    shown, left_out = recorded(texts)
    return aggregate_errors([*shown, more(left_out)] if left_out else shown)


def _set_defaults(pod: Object, spec: Object, limit_range: Object) -> None:
    """Set missing requests and limits of containers and init containers to the defaults of a LimitRange.

    The pod is modified. An annotation (`kubernetes.io/limit-ranger`) describes the changes.
    """
    requests: Object = {}
    limits: Object = {}
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            requests.update(item.get("defaultRequest") or {})
            limits.update(item.get("default") or {})
    if not requests and not limits:
        return
    changes: list[str] = []
    for kind, containers in (("container", spec.get("containers")), ("init container", spec.get("initContainers"))):
        for container in containers or ():
            changes += _fill(container, kind, requests, limits)
    if changes:
        annotations = {**(pod["metadata"].get("annotations") or {})}
        annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(changes)}"
        pod["metadata"]["annotations"] = annotations


def _fill(container: Object, kind: str, requests: Object, limits: Object) -> list[str]:
    """Set missing requests and limits of a container, and return texts such as "cpu request for container web".

    Args:
        container: the container, which is modified.
        kind: "container" or "init container", for the texts.
        requests: the default requests by resource name.
        limits: the default limits by resource name.
    """
    resources = container.setdefault("resources", {})
    changes = []
    for part, defaults in (("requests", requests), ("limits", limits)):
        missing = sorted(defaults.keys() - (resources.get(part) or {}).keys())
        if missing:
            resources[part] = {**(resources.get(part) or {}), **{name: defaults[name] for name in missing}}
            changes.append(f"{', '.join(missing)} {part[:-1]} for {kind} {container.get('name') or ''}")
    return changes
