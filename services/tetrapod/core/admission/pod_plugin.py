"""`PodPlugin`, the base class of admission plugins for pods, and accessors of the object in a request.

`name_error` checks the names of objects that plugins look up.
"""

from __future__ import annotations

from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_path_segment_name


class PodPlugin(Plugin):
    """The base class of plugins that handle pods but none of their subresources."""

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.resource == "pods" and not attributes.resource.group and not attributes.subresource


def object_of(attributes: Attributes) -> Object:
    """Return the object of a create or update request (not a copy).

    Raises:
        ValueError: the request has no object, as a delete.
    """
    if attributes.object is None:
        raise ValueError(f"{attributes.operation} has no object")
    return attributes.object


def spec_of(attributes: Attributes) -> Object:
    """Return the object's spec (not a copy), after adding an empty one if it has none.

    Raises:
        ValueError: the request has no object, as a delete.
    """
    spec: Object = object_of(attributes).setdefault("spec", {})
    return spec


def name_error(name: str) -> str:
    """Return why client-go would reject an object's name before it sends a request, or "" if it would not.

    Upstream: client-go/rest, Request.Name.
    """
    if not name:
        return "resource name may not be empty"
    errors = is_path_segment_name(name)
    return f"invalid resource name {go_quote(name)}: [{' '.join(errors)}]" if errors else ""
