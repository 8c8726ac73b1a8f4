"""The admission plugin AlwaysPullImages, off by default.

It sets imagePullPolicy to Always, so that every start of a container checks the right to pull. A policy that a mutating
webhook changes back is rejected.
Upstream: plugin/pkg/admission/alwayspullimages.
"""

from __future__ import annotations

from collections.abc import Iterator

from tetrapod.core.admission.pod_plugin import PodPlugin, object_of
from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.machinery import field
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.gvk import Object

_ALWAYS = "Always"


class AlwaysPullImages(PodPlugin):
    """The plugin that sets the pull policy of all containers and image volumes to Always.

    It rejects pods in which a later mutation has changed a policy back.
    """

    name = "AlwaysPullImages"
    operations = frozenset({"CREATE", "UPDATE"})

    def handles(self, attributes: Attributes) -> bool:
        """Return whether the request creates a pod, or updates one so that it has an image that it did not have."""
        if not super().handles(attributes):
            return False
        return attributes.operation != "UPDATE" or not _images(attributes.object or {}) <= _images(
            attributes.old_object or {}
        )

    async def admit(self, attributes: Attributes) -> None:
        for _, holder, key in _policies(object_of(attributes)):
            holder[key] = _ALWAYS

    async def validate(self, attributes: Attributes) -> None:
        policies = [(path, holder.get(key) or "") for path, holder, key in _policies(object_of(attributes))]
        errors = [str(field.not_supported(path, policy, [_ALWAYS])) for path, policy in policies if policy != _ALWAYS]
        if errors:
            raise forbidden(attributes, aggregate_errors(errors))


def _containers(pod: Object) -> Iterator[tuple[str, Object]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate((pod.get("spec") or {}).get(kind) or ()):
            yield f"spec.{kind}[{i}]", container


def _images(pod: Object) -> set[str]:
    return {container.get("image") or "" for _, container in _containers(pod)}


def _policies(pod: Object) -> Iterator[tuple[str, Object, str]]:
    """Yield (path, object, field name) for the pull policy of each container and image volume.

    `object[field name]` is the policy, which can be missing. The objects are those of the pod, not copies.
    """
    for path, container in _containers(pod):
        yield f"{path}.imagePullPolicy", container, "imagePullPolicy"
    for i, volume in enumerate((pod.get("spec") or {}).get("volumes") or ()):
        if volume.get("image") is not None:
            yield f"spec.volumes[{i}].image.pullPolicy", volume["image"], "pullPolicy"
