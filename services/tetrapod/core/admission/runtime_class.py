"""RuntimeClass: copies overhead and scheduling constraints of a pod's RuntimeClass to the pod.

Upstream: plugin/pkg/admission/runtimeclass.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.kinds import RUNTIME_CLASSES
from tetrapod.core.admission.pod_plugin import PodPlugin, name_error, spec_of
from tetrapod.core.admission.toleration_merging import merged
from tetrapod.core.podspec.pod_resources import amounts
from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

_OTHER_OVERHEAD: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


class RuntimeClass(PodPlugin):
    """The plugin that copies overhead, node selector and tolerations of the RuntimeClass to new pods.

    It rejects pods whose own values conflict with the class.
    """

    name = "RuntimeClass"
    operations = frozenset({"CREATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._classes = Lister(storages, RUNTIME_CLASSES)

    async def admit(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        runtime_class = await self._class(attributes, spec)
        if runtime_class is None:
            return
        if (overhead := runtime_class.get("overhead")) is not None:
            fixed = overhead.get("podFixed") or {}
            if spec.get("overhead") and amounts(spec["overhead"]) != amounts(fixed):
                raise forbidden(attributes, _OTHER_OVERHEAD)
            spec["overhead"] = dict(fixed)
        if scheduling := runtime_class.get("scheduling"):
            await offloaded(attributes.large, _schedule, attributes, spec, scheduling)

    async def validate(self, attributes: Attributes) -> None:
        spec = spec_of(attributes)
        runtime_class = await self._class(attributes, spec)
        overhead = (runtime_class or {}).get("overhead")
        if overhead is not None:
            if amounts(spec.get("overhead")) != amounts(overhead.get("podFixed")):
                raise forbidden(attributes, _OTHER_OVERHEAD)
        elif spec.get("overhead") is not None:
            raise forbidden(
                attributes, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )

    async def _class(self, attributes: Attributes, spec: Object) -> Object | None:
        """Return the RuntimeClass that the pod names, or None if runtimeClassName is unset.

        Raises:
            StatusError: 403 if the class does not exist; 500 if its name is invalid.
        """
        name = spec.get("runtimeClassName")
        if name is None:
            return None
        if error := name_error(name):
            raise StatusError(500, "", error)
        runtime_class = await self._classes.find("", name)
        if runtime_class is None:
            raise forbidden(attributes, f"pod rejected: RuntimeClass {go_quote(name)} not found")
        return runtime_class


def _schedule(attributes: Attributes, spec: Object, scheduling: Object) -> None:
    """Merge the RuntimeClass's node selector and tolerations into the pod spec, which is modified.

    Args:
        attributes: the request, for the error.
        spec: the spec of the pod.
        scheduling: the field `scheduling` of the RuntimeClass.

    Raises:
        StatusError: 403, both node selectors have a label with different values.
    """
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.setdefault(key, value) != value:
            text = (
                f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
            raise forbidden(attributes, f"conflict: {text}")
    if selector:
        spec["nodeSelector"] = selector
    if tolerations := merged(spec.get("tolerations") or [], scheduling.get("tolerations") or []):
        spec["tolerations"] = tolerations
