"""Generated cases: any list or map of some built-in kinds of a namespace, filled with any number of elements."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import orjson
from hypothesis import strategies as st

from stall.case import Case
from stall.message import APPLY, JSON, MERGE_PATCH, Message
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types.definitions import load

_DEPTH: Final = 7
_KINDS: Final = {
    "ConfigMap": ("v1", "io.k8s.api.core.v1.ConfigMap", "configmaps"),
    "Pod": ("v1", "io.k8s.api.core.v1.Pod", "pods"),
    "Service": ("v1", "io.k8s.api.core.v1.Service", "services"),
    "Deployment": ("apps/v1", "io.k8s.api.apps.v1.Deployment", "deployments"),
    "Job": ("batch/v1", "io.k8s.api.batch.v1.Job", "jobs"),
    "Ingress": ("networking.k8s.io/v1", "io.k8s.api.networking.v1.Ingress", "ingresses"),
    "NetworkPolicy": ("networking.k8s.io/v1", "io.k8s.api.networking.v1.NetworkPolicy", "networkpolicies"),
    "EndpointSlice": ("discovery.k8s.io/v1", "io.k8s.api.discovery.v1.EndpointSlice", "endpointslices"),
}
_VERBS: Final = {"create": ("POST", JSON), "merge patch": ("PATCH", MERGE_PATCH), "apply": ("PATCH", APPLY)}
_SCALARS: Final[dict[str, tuple[Any, ...]]] = {
    "string": ("a{}", "", "A {}", "10.0.0.1", "1"),
    "integer": (0, -1, 80),
    "boolean": (True,),
}


class Place(NamedTuple):
    """A list or a map of a kind, and the fields that lead to it."""

    kind: str
    fields: tuple[tuple[str, SchemaNode], ...]


@cache
def places() -> tuple[Place, ...]:
    """Return every list and map of the kinds."""
    return tuple(Place(kind, fields) for kind, (_, name, _) in _KINDS.items() for fields in _below(load(name), ()))


def _below(
    node: SchemaNode, fields: tuple[tuple[str, SchemaNode], ...]
) -> Iterator[tuple[tuple[str, SchemaNode], ...]]:
    if len(fields) > _DEPTH:
        return
    for name, child in node.properties.items():
        path = (*fields, (name, child))
        if child.items is not None or child.additional_properties is not None:
            yield path
        if name not in ("status", "managedFields"):
            yield from _below(child.items or child, path)


@st.composite
def generated(draw: st.DrawFn, limit: int) -> Case:
    """Return a case whose messages have up to `limit` bytes."""
    place = draw(st.sampled_from(places()))
    verb = draw(st.sampled_from(sorted(_VERBS)))
    varied = draw(st.booleans())
    choice = draw(st.integers(0, 4))
    api_version, _, resource = _KINDS[place.kind]
    base = f"/{'api' if api_version == 'v1' else 'apis'}/{api_version}/namespaces/stall/{resource}"
    method, media_type = _VERBS[verb]
    name = "" if verb == "create" else "/generated"
    target = f"{base}{name}?dryRun=All" + ("&fieldManager=m&force=true" if verb == "apply" else "")
    head: dict[str, Any] = {"apiVersion": api_version, "kind": place.kind, "metadata": {"name": "generated"}}

    def make(n: int) -> Message:
        body = {**head, **_filled(place.fields, n, varied=varied, choice=choice)}
        body["metadata"] = {**head["metadata"], **(body["metadata"] if isinstance(body["metadata"], dict) else {})}
        return Message(method, target, body=orjson.dumps(body), media_type=media_type)

    where = ".".join(name for name, _ in place.fields)
    return Case(f"{verb} of {place.kind}.{where} ({'varied' if varied else 'equal'} {choice})", "editor", make, limit)


def _filled(fields: tuple[tuple[str, SchemaNode], ...], n: int, *, varied: bool, choice: int) -> dict[str, Any]:
    """Return an object that has nothing but the fields, the last of them with `n` elements."""
    (name, node), *rest = fields
    if rest:
        inner = _filled(tuple(rest), n, varied=varied, choice=choice)
        return {name: [inner] if node.items is not None else inner}
    if node.items is not None:
        return {name: [_value(node.items, i if varied else 0, choice, 0) for i in range(n)]}
    values = node.additional_properties or SchemaNode("string")
    return {name: {f"k{i}": _value(values, i if varied else 0, choice, 0) for i in range(n)}}


def _value(node: SchemaNode, i: int, choice: int, depth: int) -> Any:
    """Return a value of a schema: required fields and scalars of an object, few others."""
    if node.enum:
        return node.enum[i % len(node.enum)]
    if node.properties and depth < 3:
        names = [
            name
            for name, child in node.properties.items()
            if name in node.required or (choice > 1 and child.type in _SCALARS)
        ]
        return {name: _value(node.properties[name], i, choice, depth + 1) for name in names}
    if node.items is not None:
        return [_value(node.items, i, choice, depth + 1)] if depth < 3 else []
    scalars = _SCALARS.get(node.type)
    if scalars is None:
        return {} if node.type == "object" else None
    value = scalars[choice % len(scalars)]
    return value.format(i) if isinstance(value, str) else value + i if type(value) is int else value
