"""Priority: sets the priority of a pod or group of pods from its PriorityClass.

Upstream: plugin/pkg/admission/priority/admission.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tetrapod.core.admission.kinds import PRIORITY_CLASSES
from tetrapod.core.admission.pod_plugin import object_of, spec_of
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import Object

_PREEMPT: Final = "PreemptLowerPriority"


class _Kind(NamedTuple):
    """A kind whose objects get a priority.

    Attributes:
        spec: its spec in error texts, such as "pod spec".
        other_priority: the error text for a given priority that is not the computed one; it has both as parameters.
        policy_gate: the feature gate of spec.preemptionPolicy, "" if the field needs none.
    """

    spec: str
    other_priority: Callable[[int, int], str]
    policy_gate: str = ""


def _other_priority_of_pod(given: int, computed: int) -> str:
    return (
        f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
        f"computed {computed} from the given PriorityClass name"
    )


def _group(name: str) -> _Kind:
    def other_priority(given: int, computed: int) -> str:
        return (
            f"priority set in the {name} ({given}) must match the priority computed ({computed}) based on the priority "
            "class set in the spec"
        )

    return _Kind(f"{name} spec", other_priority, "PodGroupPreemptionPolicy")


_KINDS: Final = {
    ("", "pods"): _Kind("pod spec", _other_priority_of_pod),
    ("scheduling.k8s.io", "podgroups"): _group("pod group"),
    ("scheduling.k8s.io", "compositepodgroups"): _group("composite pod group"),
}


class Priority(Plugin):
    """The plugin that sets the priority of pods, PodGroups and CompositePodGroups from their PriorityClass.

    It also rejects a second PriorityClass with globalDefault.
    """

    name = "Priority"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._classes = Lister(storages, PRIORITY_CLASSES)

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return not attributes.subresource and (
            (group, resource) in _KINDS or (resource == "priorityclasses" and group == "scheduling.k8s.io")
        )

    async def admit(self, attributes: Attributes) -> None:
        group, _, resource = attributes.resource
        kind = _KINDS.get((group, resource))
        if kind is None:
            return
        if attributes.operation == "CREATE":
            await self._set_priority(attributes, spec_of(attributes), kind)
        elif resource == "pods":
            _restore(spec_of(attributes), (attributes.old_object or {}).get("spec") or {})

    async def _set_priority(self, attributes: Attributes, spec: Object, kind: _Kind) -> None:
        """Set priorityClassName (if a default exists), priority and preemptionPolicy in the spec of a new object.

        Args:
            attributes: the request.
            spec: the spec of its object, changed in place.
            kind: the kind of the object.

        Raises:
            StatusError: 403, the class does not exist, or the object gives other values than its class.
        """
        name = spec.get("priorityClassName") or ""
        if name:
            priority_class = await self._classes.find("", name)
            if priority_class is None:
                raise forbidden(attributes, f"no PriorityClass with name {name} was found")
        else:
            priority_class = await self._default()
            if priority_class is not None:
                spec["priorityClassName"] = priority_class["metadata"]["name"]
        priority = (priority_class or {}).get("value") or 0
        policy = (priority_class or {}).get("preemptionPolicy") or _PREEMPT
        given_priority, given_policy = spec.get("priority"), spec.get("preemptionPolicy")
        if given_priority is not None and given_priority != priority:
            raise forbidden(attributes, kind.other_priority(given_priority, priority))
        spec["priority"] = priority
        if kind.policy_gate and not feature_gates.enabled(kind.policy_gate):
            return
        if given_policy is not None and given_policy != policy:
            text = (
                f"the string value of PreemptionPolicy ({given_policy}) must not be provided in {kind.spec}; priority "
                f"admission controller computed {policy} from the given PriorityClass name"
            )
            raise forbidden(attributes, text)
        spec["preemptionPolicy"] = policy

    async def _default(self) -> Object | None:
        """Return the PriorityClass with globalDefault, or None.

        If a race has created several, the result is the one with the lowest value.
        """
        defaults = [c for c in await self._classes.list() if c.get("globalDefault")]
        return min(defaults, key=lambda c: c.get("value") or 0, default=None)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.resource != "priorityclasses":
            return
        new = object_of(attributes)
        if not new.get("globalDefault"):
            return
        for other in await self._classes.list():
            name = other["metadata"]["name"]
            if other.get("globalDefault") and (attributes.operation == "CREATE" or name != new["metadata"]["name"]):
                raise forbidden(
                    attributes, f"PriorityClass {name} is already marked as default. Only one default can exist"
                )


def _restore(spec: Object, old_spec: Object) -> None:
    """Copy priority and preemptionPolicy from the stored spec if the update leaves them unset, as old clients do."""
    for key in ("priority", "preemptionPolicy"):
        if spec.get(key) is None and old_spec.get(key) is not None:
            spec[key] = old_spec[key]
