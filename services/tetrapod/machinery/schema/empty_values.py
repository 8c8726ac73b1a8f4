"""Normalization of empty lists and maps in built-in objects.

The result is that of a round trip through upstream's protobuf storage.

Empty lists and maps of fields without omitempty become null (`forget`). `decode` keeps them as they were sent, because
a client that sends `rules: []` owns `rules`. They become null once ownership is computed. Kinds that are stored as JSON
keep them, and custom resources are never passed to this module.

For some fields with omitempty (`DISTINGUISHED_FROM_ABSENT`) `decode` keeps empty values until the object is validated;
then `omit` removes them. Only an empty caBundle of a webhook and an empty certificate of a CertificateSigningRequest
are stored, because Go writes byte slices that are empty but not nil. `hide` removes all of them while managed fields
are computed, and `put_back` restores them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode

Forget: TypeAlias = Callable[[Any], None]

Place: TypeAlias = tuple[str | int, ...]
"""The path of a value in an object."""
Field: TypeAlias = tuple[str, str]
"""A field as the pair of definition and field name."""
Kept: TypeAlias = tuple[Place, Any]
"""A removed value with its path."""

_CORE: Final = "io.k8s.api.core.v1."
_WEBHOOKS: Final = "io.k8s.api.admissionregistration.v1."
_NETWORKING: Final = "io.k8s.api.networking.v1."
_CRD_SCHEMA: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_STORED: Final = frozenset(
    {
        (f"{_WEBHOOKS}WebhookClientConfig", "caBundle"),
        ("io.k8s.api.certificates.v1.CertificateSigningRequestStatus", "certificate"),
    }
)
"""Fields that are stored empty, but hidden from readers."""
_ADMITTED: Final = frozenset({(f"{_CORE}PodSpec", "overhead")})
"""Fields whose empty value a validating admission plugin treats differently from an absent one: RuntimeClass rejects
it.
"""
_AFFINITIES: Final = {
    "NodeAffinity": ("preferred",),
    "PodAffinity": ("required", "preferred"),
    "PodAntiAffinity": ("required", "preferred"),
}
_PRINTED: Final = frozenset(
    {
        *((f"{_CORE}Container", name) for name in ("command", "args", "ports", "envFrom", "env", "resizePolicy")),
        *((f"{_CORE}Container", name) for name in ("restartPolicyRules", "volumeMounts", "volumeDevices")),
        *((f"{_CORE}PodSpec", name) for name in ("imagePullSecrets", "hostAliases", "readinessGates", "volumes")),
        *((f"{_CORE}PodSpec", name) for name in ("initContainers", "tolerations", "resourceClaims")),
        *((f"{_CORE}PodSpec", name) for name in ("topologySpreadConstraints", "schedulingGates")),
        *((f"{_CORE}PodAffinityTerm", name) for name in ("namespaces", "matchLabelKeys", "mismatchLabelKeys")),
        (f"{_CORE}TopologySpreadConstraint", "matchLabelKeys"),
        *((f"{_CORE}{kind}VolumeSource", "items") for kind in ("Secret", "ConfigMap", "DownwardAPI")),
        *((f"{_CORE}{kind}Projection", "items") for kind in ("Secret", "ConfigMap", "DownwardAPI")),
        *((f"{_CORE}NodeSelectorTerm", name) for name in ("matchExpressions", "matchFields")),
        *(
            (f"{_CORE}{kind}", f"{phase}DuringSchedulingIgnoredDuringExecution")
            for kind, phases in _AFFINITIES.items()
            for phase in phases
        ),
        *((f"{_CORE}Capabilities", name) for name in ("add", "drop")),
        *((f"{_CORE}PodDNSConfig", name) for name in ("nameservers", "searches", "options")),
        (f"{_CORE}NodeSelectorRequirement", "values"),
        (f"{_CORE}ExecAction", "command"),
        (f"{_CORE}HTTPGetAction", "httpHeaders"),
        (f"{_CORE}PodSecurityContext", "sysctls"),
        (f"{_CORE}ResourceQuotaSpec", "scopes"),
        (f"{_CORE}HostAlias", "hostnames"),
        ("io.k8s.api.batch.v1.PodFailurePolicyRule", "onPodConditions"),
    }
)
"""Lists that errors about immutable fields print."""
DISTINGUISHED_FROM_ABSENT: Final = frozenset(
    {
        ("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies"),
        (f"{_CORE}PersistentVolumeSpec", "accessModes"),
        (f"{_CORE}PersistentVolumeSpec", "capacity"),
        (f"{_CORE}PersistentVolumeClaimSpec", "accessModes"),
        *((f"{_CORE}VolumeResourceRequirements", name) for name in ("requests", "limits")),
        (f"{_CORE}PodSecurityContext", "supplementalGroups"),
        *((f"{_CORE}PodStatus", name) for name in ("resourceClaimStatuses", "nodeAllocatableResourceClaimStatuses")),
        *((f"{_CORE}EphemeralContainer", name) for name in ("ports", "resizePolicy", "restartPolicyRules")),
        (f"{_CORE}ScopedResourceSelectorRequirement", "values"),
        (f"{_NETWORKING}IngressSpec", "rules"),
        *((f"{_NETWORKING}NetworkPolicySpec", name) for name in ("ingress", "egress")),
        *((f"{_NETWORKING}NetworkPolicyIngressRule", name) for name in ("from", "ports")),
        *((f"{_NETWORKING}NetworkPolicyEgressRule", name) for name in ("to", "ports")),
        (f"{_NETWORKING}IPBlock", "except"),
        (f"{_NETWORKING}ServiceCIDRSpec", "cidrs"),
        *(
            (_CRD_SCHEMA, name)
            for name in ("enum", "allOf", "oneOf", "anyOf", "required", "properties", "patternProperties")
        ),
        *(
            (_CRD_SCHEMA, name)
            for name in ("definitions", "dependencies", "x-kubernetes-list-map-keys", "x-kubernetes-validations")
        ),
        ("io.k8s.api.apps.v1.StatefulSetSpec", "volumeClaimTemplates"),
        ("io.k8s.api.lifecycle.v1alpha1.EvictionStatus", "conditions"),
        ("io.k8s.api.resource.v1.ResourceSliceSpec", "devices"),
        ("io.k8s.api.resource.v1.ResourceSliceSpec", "sharedCounters"),
        *(("io.k8s.api.resource.v1.Device", name) for name in ("bindingConditions", "bindingFailureConditions")),
        *((f"{_WEBHOOKS}{kind}WebhookConfiguration", "webhooks") for kind in ("Mutating", "Validating")),
        *(
            (f"{_WEBHOOKS}{kind}Webhook", name)
            for kind in ("Mutating", "Validating")
            for name in ("rules", "matchConditions")
        ),
        *_STORED,
        *_ADMITTED,
        *_PRINTED,
    }
)
"""Fields with omitempty whose empty value differs from an absent one in a default, in a validation or for the
generation.
"""
_SELECTOR: Final = ("matchLabels", "matchExpressions")
_UNSET_METADATA: Final = ("ownerReferences", "finalizers", "managedFields")
"""The lists in the metadata of a template of claims, which must be unset."""
DISTINGUISHED_BELOW: Final[dict[Field, tuple[str, ...]]] = {
    (f"{_CORE}PodTemplateSpec", "metadata"): ("labels",),
    **{(f"{_CORE}{kind}", "resources"): ("claims",) for kind in ("PodSpec", "Container")},
    (f"{_CORE}EphemeralContainer", "resources"): ("limits", "requests", "claims"),
    (f"{_CORE}PersistentVolumeClaimTemplate", "metadata"): _UNSET_METADATA,
    ("io.k8s.api.resource.v1.ResourceClaimTemplateSpec", "metadata"): _UNSET_METADATA,
    (f"{_NETWORKING}NetworkPolicySpec", "podSelector"): _SELECTOR,
    **{(f"{_NETWORKING}NetworkPolicyPeer", name): _SELECTOR for name in ("podSelector", "namespaceSelector")},
    **{
        (f"{_WEBHOOKS}{kind}Webhook", f"{name}Selector"): _SELECTOR
        for kind in ("Mutating", "Validating")
        for name in ("namespace", "object")
    },
}
"""Members whose empty value differs from an absent one only within these fields, by the field that contains them."""

JSON_STORED: Final = ("io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator.")
"""The prefixes of the definitions of kinds that are stored as JSON."""


def forget(node: SchemaNode, obj: Object) -> None:
    """Set empty lists and maps of fields without omitempty to null, in place, in a decoded built-in object.

    Objects of kinds that are stored as JSON are not changed.
    """
    if not node.definition.startswith(JSON_STORED):
        walk = _walk(node)
        if walk is not None:
            walk(obj)


def omit(node: SchemaNode, obj: Object) -> list[Kept]:
    """Remove, in place, the empty values that `decode` kept for validation, except those that are needed later.

    Those are an empty caBundle or certificate, which is stored, and an empty overhead, which admission rejects.

    Returns:
        The removed values with their paths, for `put_back`.
    """
    return [
        _take(obj, place)
        for place, field, _ in list(_empties(node, obj, (), False))
        if field not in _STORED | _ADMITTED
    ]


def hide(node: SchemaNode, obj: Object) -> list[Kept]:
    """Remove, in place, the empty values of fields with omitempty that `decode` kept, also those that are stored.

    It is called before managed fields are computed, so that these do not record such fields. Values within lists that
    are owned as a whole (atomic lists and sets) are kept.

    Returns:
        The removed values with their paths, for `put_back`.
    """
    return [_take(obj, place) for place, _, whole in list(_empties(node, obj, (), False)) if not whole]


def put_back(obj: Object, kept: list[Kept]) -> None:
    """Restore, in place, the values that `omit` or `hide` removed from the same object."""
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
    """Yield the empty values at and below a value whose fields distinguish them from absent ones.

    These fields are in `DISTINGUISHED_FROM_ABSENT` or `DISTINGUISHED_BELOW`.

    Each item is the path of an empty value, its field, and whether it is in a list that is owned as a whole. That is
    every list whose elements are not identified by keys (its list type is not `map`). Null is not an empty value.

    Args:
        node: the schema of the value; None yields nothing.
        value: the object, or a part of it.
        place: the path from the whole object to `value` (field names and list indexes), with which the yielded paths
            begin.
        whole: whether `value` is already in a list that is owned as a whole.
    """
    if node is None:
        return
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from _empties(node.items, element, (*place, index), whole or node.list_type != "map")
    elif not isinstance(value, dict):
        return
    elif node.properties:
        empty_fields, below, children = _distinguished(node)
        for name in empty_fields:
            if (member_value := value.get(name)) is not None and not member_value:
                yield (*place, name), (node.definition, name), whole
        for name, members in below:
            for member in members:
                if (member_value := (value.get(name) or {}).get(member)) is not None and not member_value:
                    yield (*place, name, member), (node.properties[name].definition, member), whole
        for name, child in children:
            if value.get(name):
                yield from _empties(child, value[name], (*place, name), whole)
    elif node.additional_properties is not None:
        for key, member in value.items():
            yield from _empties(node.additional_properties, member, (*place, key), whole)
    else:  # one of several forms; `items` is the schema of the form with an element
        yield from _empties(node.items, value, place, whole)


_Distinguished: TypeAlias = tuple[list[str], list[tuple[str, tuple[str, ...]]], list[tuple[str, SchemaNode]]]


def _distinguished(node: SchemaNode) -> _Distinguished:
    """Return the fields of a struct that `omit` and `hide` visit, as three lists, which the node caches.

    Returns:
        Three lists. The first has the fields whose own empty value is distinguished from an absent one. The second has
            the fields with such members, each with the names of these members. The third has the fields at or below
            which such fields exist, each with its schema.
    """
    compiled = node.compiled
    if "distinguished" not in compiled:
        fields = [name for name in node.properties if (node.definition, name) in DISTINGUISHED_FROM_ABSENT]
        below = [
            (name, DISTINGUISHED_BELOW[node.definition, name])
            for name in node.properties
            if (node.definition, name) in DISTINGUISHED_BELOW
        ]
        compiled["distinguished"] = (
            fields,
            below,
            [(name, child) for name, child in node.properties.items() if _reaches(child, _is_distinguished, set())],
        )
    distinguished: _Distinguished = compiled["distinguished"]
    return distinguished


def _is_distinguished(parent: SchemaNode, name: str) -> bool:
    return (parent.definition, name) in DISTINGUISHED_FROM_ABSENT or (parent.definition, name) in DISTINGUISHED_BELOW


def _walk(node: SchemaNode) -> Forget | None:
    """Return the function that `forget` runs for a schema, or None if nothing at or below it can become null.

    It is compiled once.
    """
    compiled = node.compiled
    if "emptied" not in compiled:
        compiled["emptied"] = None
        compiled["emptied"] = _compile(node) if _reaches(node, _nullable, set()) else None
    walk: Forget | None = compiled["emptied"]
    return walk


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
    """Return the function that `forget` runs for a schema at or below which something can become null.

    It is compiled once.
    """
    walk: Forget | None = node.compiled.get("emptied")
    if walk is None:
        walk = node.compiled["emptied"] = _compile(node)
    return walk


def _may_be_null(child: SchemaNode) -> bool:
    return child.presence == "n" and (child.type == "array" or child.additional_properties is not None)


def _nullable(parent: SchemaNode, name: str) -> bool:
    return _may_be_null(parent.properties[name])


def _reaches(node: SchemaNode, wanted: Callable[[SchemaNode, str], bool], seen: set[str]) -> bool:
    """Return whether `wanted(parent, name)` is true for any field at or below a schema.

    Args:
        node: the schema.
        wanted: returns whether a field is sought, called with the schema of its struct and its name.
        seen: the definitions that were visited, which ends the recursion.
    """
    if node.definition:
        if node.definition in seen:
            return False
        seen.add(node.definition)
    if any(wanted(node, name) or _reaches(child, wanted, seen) for name, child in node.properties.items()):
        return True
    return any(
        child is not None and _reaches(child, wanted, seen) for child in (node.items, node.additional_properties)
    )
