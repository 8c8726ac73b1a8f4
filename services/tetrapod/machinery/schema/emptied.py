"""`forget`: empty lists and maps that are written without omitempty become null, as protobuf storage gives them back.

`decode` leaves them as they were sent, because who sends `rules: []` owns `rules`; once ownership is settled they are null,
like those that were never sent. Kinds that are stored as JSON keep them, as do custom resources, which nobody brings here.

Of those with omitempty `decode` keeps a few (`TOLD_FROM_ABSENT`), until the object has been validated; then `omit` leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.node import SchemaNode

Forget: TypeAlias = Callable[[Any], None]

_CORE: Final = "io.k8s.api.core.v1."
_OMITTED: Final = {
    "io.k8s.api.apps.v1.StatefulSetSpec": ("volumeClaimTemplates",),
    "io.k8s.api.resource.v1.ResourceSliceSpec": ("devices", "sharedCounters"),
}
"""Empty lists that may be valid: lists of the member `spec` of their kind."""
TOLD_FROM_ABSENT: Final = frozenset(
    {
        ("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies"),
        (f"{_CORE}PersistentVolumeSpec", "accessModes"),
        (f"{_CORE}PersistentVolumeSpec", "capacity"),
        (f"{_CORE}PersistentVolumeClaimSpec", "accessModes"),
        (f"{_CORE}PodSpec", "overhead"),
        (f"{_CORE}VolumeResourceRequirements", "requests"),
        ("io.k8s.api.networking.v1.ServiceCIDRSpec", "cidrs"),
        ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps", "dependencies"),
        *((definition, name) for definition, names in _OMITTED.items() for name in names),
    }
)
"""Lists and maps with omitempty that a default or a refusal tells from absent ones when they are empty; none is ever stored."""

JSON_STORED: Final = ("io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator.")


def forget(node: SchemaNode, obj: Object) -> None:
    """Of a built-in object in its decoded form, in place."""
    if not node.definition.startswith(JSON_STORED):
        walk = _walk(node)
        if walk is not None:
            walk(obj)


def omit(node: SchemaNode, obj: Object) -> list[str]:
    """Leave out in place what was kept for validation alone; returns the names, which are of members of `spec`."""
    names = _OMITTED.get(node.properties["spec"].definition) if "spec" in node.properties else None
    if not names:
        return []
    spec = obj.get("spec") or {}
    found = [name for name in names if spec.get(name) == []]
    for name in found:
        del spec[name]
    return found


def _walk(node: SchemaNode) -> Forget | None:
    """Compiled once for a node; None where nothing below can be null."""
    compiled = node.compiled
    if "emptied" not in compiled:
        compiled["emptied"] = None
        compiled["emptied"] = _compile(node) if _reaches(node, set()) else None
    found: Forget | None = compiled["emptied"]
    return found


def _compile(node: SchemaNode) -> Forget:
    if node.properties:
        return _members(node)
    element = node.items if node.type == "array" else node.additional_properties
    assert element is not None
    return _elements(element)


def _members(node: SchemaNode) -> Forget:
    nulls = frozenset(name for name, child in node.properties.items() if _may_be_null(child))
    walks = {name: child for name, child in node.properties.items() if _reaches(child, set())}

    def walk(obj: Any) -> None:
        for name in nulls:
            value = obj.get(name)
            if value is not None and not value:
                obj[name] = None
        for name, child in walks.items():
            value = obj.get(name)
            if value:
                _below(child)(value)

    return walk


def _elements(element: SchemaNode) -> Forget:
    def walk(values: Any) -> None:
        below = _below(element)
        for value in values.values() if isinstance(values, dict) else values:
            if value:
                below(value)

    return walk


def _below(node: SchemaNode) -> Forget:
    """The walk of a node that reaches something."""
    found: Forget | None = node.compiled.get("emptied")
    if found is None:
        found = node.compiled["emptied"] = _compile(node)
    return found


def _may_be_null(child: SchemaNode) -> bool:
    return child.presence == "n" and (child.type == "array" or child.additional_properties is not None)


def _reaches(node: SchemaNode, seen: set[str]) -> bool:
    """Whether something at or below the members of a node may be null."""
    if node.definition:
        if node.definition in seen:
            return False
        seen.add(node.definition)
    if any(_may_be_null(child) or _reaches(child, seen) for child in node.properties.values()):
        return True
    return any(child is not None and _reaches(child, seen) for child in (node.items, node.additional_properties))
