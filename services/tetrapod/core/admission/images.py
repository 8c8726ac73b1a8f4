"""The admission plugin AlwaysPullImages, off by default.

It sets imagePullPolicy to Always, so that every start of a container checks the right to pull. A policy that a mutating
webhook changes back is rejected.
Upstream: plugin/pkg/admission/alwayspullimages.
"""

from __future__ import annotations

from collections.abc import Iterator

from tetrapod.core.admission.pod_plugin import PodPlugin, object_of
from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery import field
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.error_limits import more, record, recorded
from tetrapod.machinery.gvk import Object

_ALWAYS = "Always"


class AlwaysPullImages(PodPlugin):
    """The plugin that sets the pull policy of all containers and image volumes to Always.

    It rejects pods in which a later mutation has changed a policy back.
    """

    name = "AlwaysPullImages"
    operations = frozenset({"CREATE", "UPDATE"})

    async def admit(self, attributes: Attributes) -> None:
        await offloaded(attributes.large, _set_policies, object_of(attributes), attributes.old_object)

    async def validate(self, attributes: Attributes) -> None:
        if text := await offloaded(attributes.large, _other_policies, object_of(attributes), attributes.old_object):
            raise forbidden(attributes, text)


def _set_policies(pod: Object, old_pod: Object | None) -> None:
    """Set the pull policy of all containers and image volumes to Always, in place, unless an update has no new image.

    Args:
        old_pod: the stored pod; None on create.
    """
    if _has_new_images(pod, old_pod):
        for _, holder, key in _policies(pod):
            holder[key] = _ALWAYS


def _other_policies(pod: Object, old_pod: Object | None) -> str:
    """Return the error text for policies other than Always; "" without such policies or new images.

    Args:
        old_pod: the stored pod; None on create.
    """
    if not _has_new_images(pod, old_pod):
        return ""
    texts: list[str] = []
    for path, holder, key in _policies(pod):
        if (policy := holder.get(key) or "") != _ALWAYS:
            record(texts, str(field.not_supported(path, policy, [_ALWAYS])))
    shown, left_out = recorded(texts)
    return aggregate_errors([*shown, more(left_out)] if left_out else shown)


def _has_new_images(pod: Object, old_pod: Object | None) -> bool:
    return old_pod is None or not _images(pod) <= _images(old_pod)


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
