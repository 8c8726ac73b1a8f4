"""The empty object of a kind, with which a created object is compared to find the fields that its creator owns.

It already has the fields that Go always encodes (structs and values without omitempty), so a create does not add them.
Therefore `spec` of a Deployment has no owner, while `spec` of a custom resource has one.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode

_ZEROS = {"string": "", "integer": 0, "number": 0, "boolean": False}


_NULLS: Final = ("apis.meta.v1.Time", "apis.meta.v1.MicroTime", "pkg.runtime.RawExtension")
"""Types whose unset values are encoded as null."""


def empty_object(kind: GroupVersionKind, node: SchemaNode) -> Object:
    """Return an object of the kind with only the fields that Go encodes even if they are unset.

    It must not be modified.

    For custom resources it has only apiVersion and kind.

    Args:
        kind: the kind.
        node: the schema of the kind, which caches the object.
    """
    empty: Object | None = node.compiled.get("fieldmanager empty")
    if empty is None:
        empty = {"kind": kind.kind, "apiVersion": kind.api_version}
        if node.definition:
            empty.update(_zero(node, ()))
        node.compiled["fieldmanager empty"] = empty
    return empty


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
