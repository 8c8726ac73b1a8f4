"""Priority: a pod's priority is its class's, never the user's (upstream: plugin/pkg/admission/priority/admission.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.kinds import PRIORITY_CLASSES
from tetrapod.core.admission.pod_plugin import object_of, spec_of
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import Object

_PREEMPT: Final = "PreemptLowerPriority"


class Priority(Plugin):
    name = "Priority"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._classes = Lister(storages, PRIORITY_CLASSES)

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return not attributes.subresource and (
            (resource == "pods" and not group) or (resource == "priorityclasses" and group == "scheduling.k8s.io")
        )

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.resource != "pods":
            return
        spec = spec_of(attributes)
        if attributes.operation == "UPDATE":
            _keep(spec, (attributes.old_object or {}).get("spec") or {})
        else:
            await self._settle(attributes, spec)

    async def _settle(self, attributes: Attributes, spec: Object) -> None:
        name = spec.get("priorityClassName") or ""
        if name:
            found = await self._classes.find("", name)
            if found is None:
                raise forbidden(attributes, f"no PriorityClass with name {name} was found")
        else:
            found = await self._default()
            if found is not None:
                spec["priorityClassName"] = found["metadata"]["name"]
        priority = (found or {}).get("value") or 0
        policy = (found or {}).get("preemptionPolicy") or _PREEMPT
        given, given_policy = spec.get("priority"), spec.get("preemptionPolicy")
        computed = "must not be provided in pod spec; priority admission controller computed"
        if given is not None and given != priority:
            raise forbidden(attributes, f"the integer value of priority ({given}) {computed} {priority} from the given PriorityClass name")
        spec["priority"] = priority
        if given_policy is not None and given_policy != policy:
            text = f"the string value of PreemptionPolicy ({given_policy}) {computed} {policy} from the given PriorityClass name"
            raise forbidden(attributes, text)
        spec["preemptionPolicy"] = policy

    async def _default(self) -> Object | None:
        """The global default; of several, which only a race can make, the lowest."""
        found = [c for c in await self._classes.list() if c.get("globalDefault")]
        return min(found, key=lambda c: c.get("value") or 0, default=None)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.resource == "pods":
            return
        new = object_of(attributes)
        if not new.get("globalDefault"):
            return
        for other in await self._classes.list():
            name = other["metadata"]["name"]
            if other.get("globalDefault") and (attributes.operation == "CREATE" or name != new["metadata"]["name"]):
                raise forbidden(attributes, f"PriorityClass {name} is already marked as default. Only one default can exist")


def _keep(spec: Object, before: Object) -> None:
    """An update that leaves them out, as old clients do, does not mean to remove them."""
    for key in ("priority", "preemptionPolicy"):
        if spec.get(key) is None and before.get(key) is not None:
            spec[key] = before[key]
