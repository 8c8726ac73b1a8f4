"""`forget`: empty lists and maps that are written without omitempty become null, as protobuf storage gives them back.

`decode` leaves them as they were sent, because who sends `rules: []` owns `rules`; once ownership is settled they are null,
like those that were never sent. Kinds that are stored as JSON keep them, as do custom resources, which nobody brings here.

Of those with omitempty `decode` keeps a few (`TOLD_FROM_ABSENT`), until the object has been validated; then `omit` leaves them out.
An empty caBundle of a webhook alone is stored, for Go writes bytes that are empty but there: only readers do not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.shapes.node import SchemaNode

Forget: TypeAlias = Callable[[Any], None]

Place: TypeAlias = tuple[str | int, ...]
"""Where something is in an object."""
Field: TypeAlias = tuple[str, str]
"""Of a definition, by name."""
Kept: TypeAlias = tuple[Place, Any]
"""What was left out, and where."""

_CORE: Final = "io.k8s.api.core.v1."
_WEBHOOKS: Final = "io.k8s.api.admissionregistration.v1."
_NETWORKING: Final = "io.k8s.api.networking.v1."
_CRD_SCHEMA: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_STORED: Final = frozenset({(f"{_WEBHOOKS}WebhookClientConfig", "caBundle")})
"""What is stored empty, and not written for a reader."""
_ADMITTED: Final = frozenset({(f"{_CORE}PodSpec", "overhead")})
"""What validating admission tells from absent: RuntimeClass refuses it."""
TOLD_FROM_ABSENT: Final = frozenset(
    {
        ("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies"),
        (f"{_CORE}PersistentVolumeSpec", "accessModes"),
        (f"{_CORE}PersistentVolumeSpec", "capacity"),
        (f"{_CORE}PersistentVolumeClaimSpec", "accessModes"),
        (f"{_CORE}VolumeResourceRequirements", "requests"),
        (f"{_CORE}PodSecurityContext", "supplementalGroups"),
        *((f"{_CORE}EphemeralContainer", name) for name in ("ports", "resizePolicy", "restartPolicyRules")),
        (f"{_CORE}ScopedResourceSelectorRequirement", "values"),
        (f"{_NETWORKING}IngressSpec", "rules"),
        *((f"{_NETWORKING}NetworkPolicySpec", name) for name in ("ingress", "egress")),
        *((f"{_NETWORKING}NetworkPolicyIngressRule", name) for name in ("from", "ports")),
        *((f"{_NETWORKING}NetworkPolicyEgressRule", name) for name in ("to", "ports")),
        (f"{_NETWORKING}IPBlock", "except"),
        (f"{_NETWORKING}ServiceCIDRSpec", "cidrs"),
        *((_CRD_SCHEMA, name) for name in ("enum", "allOf", "oneOf", "anyOf", "required", "properties", "patternProperties")),
        *((_CRD_SCHEMA, name) for name in ("definitions", "dependencies", "x-kubernetes-list-map-keys", "x-kubernetes-validations")),
        ("io.k8s.api.apps.v1.StatefulSetSpec", "volumeClaimTemplates"),
        ("io.k8s.api.resource.v1.ResourceSliceSpec", "devices"),
        ("io.k8s.api.resource.v1.ResourceSliceSpec", "sharedCounters"),
        *(("io.k8s.api.resource.v1.Device", name) for name in ("bindingConditions", "bindingFailureConditions")),
        *((f"{_WEBHOOKS}{kind}WebhookConfiguration", "webhooks") for kind in ("Mutating", "Validating")),
        *((f"{_WEBHOOKS}{kind}Webhook", name) for kind in ("Mutating", "Validating") for name in ("rules", "matchConditions")),
        *_STORED,
        *_ADMITTED,
    }
)
"""Fields with omitempty that a default, a refusal or a generation tells from absent ones when they are empty."""
_SELECTOR: Final = ("matchLabels", "matchExpressions")
TOLD_BELOW: Final[dict[Field, tuple[str, ...]]] = {
    (f"{_CORE}PodTemplateSpec", "metadata"): ("labels",),
    (f"{_CORE}PodSpec", "resources"): ("claims",),
    (f"{_NETWORKING}NetworkPolicySpec", "podSelector"): _SELECTOR,
    **{(f"{_NETWORKING}NetworkPolicyPeer", name): _SELECTOR for name in ("podSelector", "namespaceSelector")},
    **{
        (f"{_WEBHOOKS}{kind}Webhook", f"{name}Selector"): _SELECTOR
        for kind in ("Mutating", "Validating")
        for name in ("namespace", "object")
    },
}
"""Such fields of a type that has them in these places alone."""

JSON_STORED: Final = ("io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator.")


def forget(node: SchemaNode, obj: Object) -> None:
    """Of a built-in object in its decoded form, in place."""
    if not node.definition.startswith(JSON_STORED):
        walk = _walk(node)
        if walk is not None:
            walk(obj)


def omit(node: SchemaNode, obj: Object) -> list[Kept]:
    """Leave out in place what was kept until an object is stored. Returns it, for `put_back`."""
    return [_take(obj, place) for place, field, _ in list(_empties(node, obj, (), False)) if field not in _STORED | _ADMITTED]


def hide(node: SchemaNode, obj: Object) -> list[Kept]:
    """As `omit`, with what is stored but not shown to a reader; lists that are owned as a whole stay as they are."""
    return [_take(obj, place) for place, _, whole in list(_empties(node, obj, (), False)) if not whole]


def put_back(obj: Object, kept: list[Kept]) -> None:
    for (*above, name), value in kept:
        _at(obj, above)[name] = value


def _take(obj: Object, place: Place) -> Kept:
    *above, name = place
    return place, _at(obj, above).pop(name)


def _at(obj: Any, place: Iterable[str | int]) -> Any:
    for step in place:
        obj = obj[step]
    return obj


def _empties(node: SchemaNode | None, value: Any, place: Place, whole: bool) -> Iterator[tuple[Place, Field, bool]]:
    """What is empty of `TOLD_FROM_ABSENT`, and whether it is in a list that is owned as a whole."""
    if node is None:
        return
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from _empties(node.items, element, (*place, index), whole or node.list_type != "map")
    elif not isinstance(value, dict):
        return
    elif node.properties:
        told, below, children = _telling(node)
        for name in told:
            if (found := value.get(name)) is not None and not found:
                yield (*place, name), (node.definition, name), whole
        for name, members in below:
            for member in members:
                if (found := (value.get(name) or {}).get(member)) is not None and not found:
                    yield (*place, name, member), (node.properties[name].definition, member), whole
        for name, child in children:
            if value.get(name):
                yield from _empties(child, value[name], (*place, name), whole)
    elif node.additional_properties is not None:
        for key, member in value.items():
            yield from _empties(node.additional_properties, member, (*place, key), whole)
    else:  # one of several forms, of which this is the element's
        yield from _empties(node.items, value, place, whole)


_Telling: TypeAlias = tuple[list[str], list[tuple[str, tuple[str, ...]]], list[tuple[str, SchemaNode]]]


def _telling(node: SchemaNode) -> _Telling:
    """Of a struct the fields that are told from absent ones, those of its fields' that are, and fields with such below; found once."""
    compiled = node.compiled
    if "told" not in compiled:
        told = [name for name in node.properties if (node.definition, name) in TOLD_FROM_ABSENT]
        below = [(name, TOLD_BELOW[node.definition, name]) for name in node.properties if (node.definition, name) in TOLD_BELOW]
        compiled["told"] = told, below, [(name, child) for name, child in node.properties.items() if _reaches(child, _is_told, set())]
    found: _Telling = compiled["told"]
    return found


def _is_told(parent: SchemaNode, name: str) -> bool:
    return (parent.definition, name) in TOLD_FROM_ABSENT or (parent.definition, name) in TOLD_BELOW


def _walk(node: SchemaNode) -> Forget | None:
    """Compiled once for a node; None where nothing below can be null."""
    compiled = node.compiled
    if "emptied" not in compiled:
        compiled["emptied"] = None
        compiled["emptied"] = _compile(node) if _reaches(node, _nullable, set()) else None
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
    walks = {name: child for name, child in node.properties.items() if _reaches(child, _nullable, set())}

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


def _nullable(parent: SchemaNode, name: str) -> bool:
    return _may_be_null(parent.properties[name])


def _reaches(node: SchemaNode, wanted: Callable[[SchemaNode, str], bool], seen: set[str]) -> bool:
    """Whether one of the fields at or below a node is wanted."""
    if node.definition:
        if node.definition in seen:
            return False
        seen.add(node.definition)
    if any(wanted(node, name) or _reaches(child, wanted, seen) for name, child in node.properties.items()):
        return True
    return any(child is not None and _reaches(child, wanted, seen) for child in (node.items, node.additional_properties))
