"""The empty object of a kind: what a create is compared with.

Fields that are always written, whether set or not (Go structs and values without omitempty), exist in it already, so a
create does not "add" them: that is why nobody owns `spec` of a Deployment, but somebody owns `spec` of a custom resource.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.shapes.node import NO_DEFAULT, SchemaNode

_ZEROS = {"string": "", "integer": 0, "number": 0, "boolean": False}


_NULLS: Final = ("apis.meta.v1.Time", "apis.meta.v1.MicroTime", "pkg.runtime.RawExtension")
"""A time or an object of any kind that is not given is written as null."""


def empty_object(kind: GroupVersionKind, node: SchemaNode) -> Object:
    """An object of a kind with nothing set; it is shared and not to be changed. Custom resources have only their kind."""
    found: Object | None = node.compiled.get("fieldmanager empty")
    if found is None:
        found = {"kind": kind.kind, "apiVersion": kind.api_version}
        if node.definition:
            found.update(_zero(node, ()))
        node.compiled["fieldmanager empty"] = found
    return found


def _zero(node: SchemaNode, inside: tuple[str, ...]) -> Any:
    if node.definition.endswith(".Quantity"):
        return "0"
    if node.definition.endswith(_NULLS):
        return None
    if node.type != "object" or node.definition in inside:
        return _ZEROS.get(node.type) if node.default is NO_DEFAULT or node.default == {} else node.default
    inside = (*inside, node.definition) if node.definition else inside
    out: Object = {}
    for name, child in node.properties.items():
        if child.presence == "=":
            out[name] = _zero(child, inside)
        elif child.presence == "n":
            out[name] = None
    return out
