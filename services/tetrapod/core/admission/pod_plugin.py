"""The base class of admission plugins for pods, and accessors of the object."""

from __future__ import annotations

from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.machinery.gvk import Object


class PodPlugin(Plugin):
    """The base of plugins that handle pods but not their subresources."""

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.resource == "pods" and not attributes.resource.group and not attributes.subresource


def object_of(attributes: Attributes) -> Object:
    """Return the object of a create or update."""
    if attributes.object is None:
        raise ValueError(f"{attributes.operation} has no object")
    return attributes.object


def spec_of(attributes: Attributes) -> Object:
    """Return the object's spec, adding an empty one if it has none."""
    spec: Object = object_of(attributes).setdefault("spec", {})
    return spec
