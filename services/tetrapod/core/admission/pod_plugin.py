"""What plugins that look at pods have in common."""

from __future__ import annotations

from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.machinery.gvk import Object


class PodPlugin(Plugin):
    """Asked about pods themselves, not their subresources."""

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.resource == "pods" and not attributes.resource.group and not attributes.subresource


def object_of(attributes: Attributes) -> Object:
    """The object of a create or update."""
    if attributes.object is None:
        raise ValueError(f"{attributes.operation} has no object")
    return attributes.object


def spec_of(attributes: Attributes) -> Object:
    spec: Object = object_of(attributes).setdefault("spec", {})
    return spec
