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
"""Where something is in an object; `EACH` stands for every element of a list."""
EACH: Final = -1

_CORE: Final = "io.k8s.api.core.v1."
_WEBHOOKS: Final = "io.k8s.api.admissionregistration.v1."
_NETWORKING: Final = "io.k8s.api.networking.v1."
_OF_WEBHOOKS: Final[tuple[Place, ...]] = (("webhooks",), ("webhooks", EACH, "rules"), ("webhooks", EACH, "matchConditions"))
_CA_BUNDLES: Final[tuple[Place, ...]] = (("webhooks", EACH, "clientConfig", "caBundle"),)
_OMITTED: Final[dict[str, tuple[Place, ...]]] = {
    f"{_WEBHOOKS}MutatingWebhookConfiguration": _OF_WEBHOOKS,
    f"{_WEBHOOKS}ValidatingWebhookConfiguration": _OF_WEBHOOKS,
    "io.k8s.api.apps.v1.StatefulSet": (("spec", "volumeClaimTemplates"),),
    f"{_NETWORKING}Ingress": (("spec", "rules"),),
    f"{_NETWORKING}NetworkPolicy": (
        ("spec", "ingress"),
        ("spec", "egress"),
        *(("spec", way, EACH, name) for way, peers in (("ingress", "from"), ("egress", "to")) for name in ("ports", peers)),
    ),
    "io.k8s.api.resource.v1.ResourceSlice": (("spec", "devices"), ("spec", "sharedCounters")),
}
"""What may be empty in a valid object of a kind."""
_STORED: Final[dict[str, tuple[Place, ...]]] = {
    f"{_WEBHOOKS}MutatingWebhookConfiguration": _CA_BUNDLES,
    f"{_WEBHOOKS}ValidatingWebhookConfiguration": _CA_BUNDLES,
}
"""What is stored empty, and not written for a reader."""
TOLD_FROM_ABSENT: Final = frozenset(
    {
        ("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies"),
        (f"{_CORE}PersistentVolumeSpec", "accessModes"),
        (f"{_CORE}PersistentVolumeSpec", "capacity"),
        (f"{_CORE}PersistentVolumeClaimSpec", "accessModes"),
        (f"{_CORE}PodSpec", "overhead"),
        (f"{_CORE}VolumeResourceRequirements", "requests"),
        (f"{_NETWORKING}IngressSpec", "rules"),
        *((f"{_NETWORKING}NetworkPolicySpec", name) for name in ("ingress", "egress")),
        *((f"{_NETWORKING}NetworkPolicyIngressRule", name) for name in ("from", "ports")),
        *((f"{_NETWORKING}NetworkPolicyEgressRule", name) for name in ("to", "ports")),
        (f"{_NETWORKING}ServiceCIDRSpec", "cidrs"),
        ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps", "dependencies"),
        ("io.k8s.api.apps.v1.StatefulSetSpec", "volumeClaimTemplates"),
        ("io.k8s.api.resource.v1.ResourceSliceSpec", "devices"),
        ("io.k8s.api.resource.v1.ResourceSliceSpec", "sharedCounters"),
        *((f"{_WEBHOOKS}{kind}WebhookConfiguration", "webhooks") for kind in ("Mutating", "Validating")),
        *((f"{_WEBHOOKS}{kind}Webhook", name) for kind in ("Mutating", "Validating") for name in ("rules", "matchConditions")),
        (f"{_WEBHOOKS}WebhookClientConfig", "caBundle"),
    }
)
"""Fields with omitempty that a default, a refusal or a generation tells from absent ones when they are empty."""

JSON_STORED: Final = ("io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator.")


def forget(node: SchemaNode, obj: Object) -> None:
    """Of a built-in object in its decoded form, in place."""
    if not node.definition.startswith(JSON_STORED):
        walk = _walk(node)
        if walk is not None:
            walk(obj)


def omit(node: SchemaNode, obj: Object) -> list[Place]:
    """Leave out in place what was kept until an object is stored. Returns the places, for `put_back`."""
    return _left_out(obj, _OMITTED.get(node.definition, ()))


def hide(node: SchemaNode, obj: Object) -> list[Place]:
    """As `omit`, with what is stored but not shown to a reader; lists that are owned as a whole stay as they are."""
    places = (*_OMITTED.get(node.definition, ()), *_STORED.get(node.definition, ()))
    return _left_out(obj, [place for place in places if not _within_atomic(node, place)])


def _within_atomic(node: SchemaNode, place: Place) -> bool:
    at = node
    for step in place[:-1]:
        below = at.items if step == EACH else at.properties[str(step)]
        assert below is not None
        if step == EACH and at.list_type != "map":
            return True
        at = below
    return False


def put_back(obj: Object, places: list[Place]) -> None:
    for *above, name in places:
        within: Any = obj
        for step in above:
            within = within[step]
        within[name] = "" if name == "caBundle" else []


def _left_out(obj: Object, places: Iterable[Place]) -> list[Place]:
    return [found for place in places for found in _leave_out(obj, place, ())]


def _leave_out(value: Any, place: Place, within: Place) -> Iterator[Place]:
    name, *rest = place
    if name == EACH:
        for index, element in enumerate(value):
            yield from _leave_out(element, tuple(rest), (*within, index))
    elif rest:
        yield from _leave_out(value.get(name) or {}, tuple(rest), (*within, name))
    elif value.get(name) in ([], ""):
        del value[name]
        yield (*within, name)


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
