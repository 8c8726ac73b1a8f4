"""Tests of facts about built-in types and resources."""

from __future__ import annotations

import pytest

from tetrapod.machinery import types
from tetrapod.machinery.gvk import GroupVersionKind
from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode
from tetrapod.machinery.types import definitions


def test_a_kind_leads_to_its_fields() -> None:
    containers = (
        types.schema_for(GroupVersionKind("apps", "v1", "Deployment")).properties["spec"].properties["template"]
    )
    container = containers.properties["spec"].properties["containers"]
    assert (container.list_type, container.list_map_keys, container.patch_merge_key) == ("map", ("name",), "name")
    assert container.items is not None
    assert container.items.definition == "io.k8s.api.core.v1.Container"


def test_references_share_their_definition_but_not_the_keywords_beside_it() -> None:
    pod = types.schema_for(GroupVersionKind("", "v1", "Pod"))
    spec = pod.properties["spec"]
    assert spec.properties is types.load("io.k8s.api.core.v1.PodSpec").properties
    assert spec.default == {}
    assert types.load("io.k8s.api.core.v1.PodSpec").default is NO_DEFAULT


def test_recursive_types_are_circles() -> None:
    props = types.load("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert props.properties["not"].properties["not"].properties is props.properties


def test_every_definition_loads() -> None:
    def touch(node: SchemaNode) -> None:
        assert node.type or node.preserve_unknown or node.int_or_string

    for name in definitions.names():
        node = types.load(name)
        for child in [*node.properties.values(), node.items, node.additional_properties]:
            if child is not None:
                touch(child)


@pytest.mark.parametrize("gvk", [GroupVersionKind("", "v1", "Nope"), GroupVersionKind("nope", "v1", "Pod")])
def test_unknown_kinds_are_key_errors(gvk: GroupVersionKind) -> None:
    with pytest.raises(KeyError):
        types.schema_for(gvk)


def test_every_group_version_has_delete_options() -> None:
    assert types.schema_for(GroupVersionKind("batch", "v1", "DeleteOptions")) is types.schema_for(
        GroupVersionKind("", "v1", "DeleteOptions")
    )


def test_resources_are_in_discovery_order_with_their_subresources() -> None:
    apps = {resource.name: resource for resource in types.resource_facts("apps", "v1")}
    assert list(apps) == ["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]
    assert [(sub.name, sub.kind.kind) for sub in apps["deployments"].subresources] == [
        ("scale", "Scale"),
        ("status", "Deployment"),
    ]
    assert apps["deployments"].short_names == ("deploy",)
    assert types.resource_facts("nope", "v1") == ()
    assert next(g.versions for g in types.groups() if g.name == "autoscaling") == ("v2", "v1")
