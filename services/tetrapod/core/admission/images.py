"""AlwaysPullImages: who may pull an image is asked at every start of a container (upstream: plugin/pkg/admission/alwayspullimages).

Off by default. What a mutating webhook changes back is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from tetrapod.core.admission.pod_plugin import PodPlugin, object_of
from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.machinery import field
from tetrapod.machinery.gvk import Object

_ALWAYS = "Always"


class AlwaysPullImages(PodPlugin):
    name = "AlwaysPullImages"
    operations = frozenset({"CREATE", "UPDATE"})

    def handles(self, attributes: Attributes) -> bool:
        """An update that names no new image leaves everything as it is."""
        if not super().handles(attributes):
            return False
        return attributes.operation != "UPDATE" or not _images(attributes.object or {}) <= _images(attributes.old_object or {})

    async def admit(self, attributes: Attributes) -> None:
        for _, holder, key in _policies(object_of(attributes)):
            holder[key] = _ALWAYS

    async def validate(self, attributes: Attributes) -> None:
        found = [(path, holder.get(key) or "") for path, holder, key in _policies(object_of(attributes))]
        wrong = [str(field.not_supported(path, policy, [_ALWAYS])) for path, policy in found if policy != _ALWAYS]
        if wrong:
            raise forbidden(attributes, wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")


def _containers(pod: Object) -> Iterator[tuple[str, Object]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate((pod.get("spec") or {}).get(kind) or ()):
            yield f"spec.{kind}[{i}]", container


def _images(pod: Object) -> set[str]:
    return {container.get("image") or "" for _, container in _containers(pod)}


def _policies(pod: Object) -> Iterator[tuple[str, Object, str]]:
    """Where each policy is told, what holds it, and by which name: of containers, and of volumes that are images."""
    for path, container in _containers(pod):
        yield f"{path}.imagePullPolicy", container, "imagePullPolicy"
    for i, volume in enumerate((pod.get("spec") or {}).get("volumes") or ()):
        if volume.get("image") is not None:
            yield f"spec.volumes[{i}].image.pullPolicy", volume["image"], "pullPolicy"
