"""Tests of the stored version of CustomResourceDefinitions, v1beta1: what kube-apiserver stored is served as its v1."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.storage.crd_versions import V1, V1BETA1, to_v1, to_v1beta1

SCHEMA = {"openAPIV3Schema": {"type": "object"}}
CLIENT = {"url": "https://x"}
OTHER = {"openAPIV3Schema": {"type": "object", "description": "other"}}
NAMES = {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"}
SET = {"names": NAMES, "scope": "Cluster", "preserveUnknownFields": False}
DEFAULTS = {"names": NAMES, "scope": "Cluster", "conversion": {"strategy": "None"}}
V1_VERSION = {"name": "v1", "served": True, "storage": True}
V2_VERSION = {"name": "v2", "served": True, "storage": False}


def served(stored: dict[str, Any]) -> Any:
    return orjson.loads(to_v1(orjson.dumps(stored)))


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"version": "v1", "versions": [V1_VERSION, V2_VERSION], "validation": SCHEMA},
            {"versions": [{**V1_VERSION, "schema": SCHEMA}, {**V2_VERSION, "schema": SCHEMA}]},
        ),
        (
            {
                "version": "v1",
                "versions": [{**V1_VERSION, "schema": SCHEMA}, {**V2_VERSION, "schema": OTHER}],
                "preserveUnknownFields": False,
            },
            {"versions": [{**V1_VERSION, "schema": SCHEMA}, {**V2_VERSION, "schema": OTHER}]},
        ),
        ({"version": "v1"}, {"versions": [V1_VERSION]}),
        (
            {"versions": [V1_VERSION], "additionalPrinterColumns": [{"name": "a", "type": "string", "JSONPath": ".a"}]},
            {
                "versions": [
                    {**V1_VERSION, "additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": ".a"}]}
                ]
            },
        ),
        (
            {
                "versions": [V1_VERSION],
                "subresources": {"status": {}},
                "conversion": {
                    "strategy": "Webhook",
                    "webhookClientConfig": CLIENT,
                    "conversionReviewVersions": ["v1"],
                },
            },
            {
                "versions": [{**V1_VERSION, "subresources": {"status": {}}}],
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {"clientConfig": CLIENT, "conversionReviewVersions": ["v1"]},
                },
            },
        ),
        (
            {"versions": [V1_VERSION], "conversion": {"strategy": "None"}},
            {"versions": [V1_VERSION], "conversion": {"strategy": "None"}},
        ),
    ],
)
def test_fields_that_versions_share_are_returned_in_each(spec: dict[str, Any], wanted: dict[str, Any]) -> None:
    definition = {"kind": "CustomResourceDefinition", "apiVersion": V1BETA1, "metadata": {"name": "a"}}
    assert served({**definition, "spec": {**SET, **spec}}) == {
        "apiVersion": V1,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "a"},
        "spec": {**DEFAULTS, **wanted},
        "status": {"storedVersions": ["v1"]},
    }


def test_unset_fields_have_the_defaults_of_v1beta1() -> None:
    spec = {"version": "v1", "names": {"plural": "as", "kind": "A"}, "conversion": {"strategy": "Webhook"}}
    definition = {"kind": "CustomResourceDefinition", "apiVersion": V1BETA1, "metadata": {}, "spec": spec}
    assert served(definition)["spec"] == {
        "versions": [V1_VERSION],
        "names": NAMES,
        "scope": "Namespaced",
        "preserveUnknownFields": True,
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1beta1"]}},
    }


def _definition(spec: dict[str, Any]) -> bytes:
    status = {"storedVersions": ["v1"]}
    head = {"kind": "CustomResourceDefinition", "apiVersion": V1, "metadata": {"name": "a"}}
    return orjson.dumps({**head, "spec": spec, "status": status})


def _optional(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


_COLUMNS = st.lists(st.just({"name": "a", "type": "string", "jsonPath": ".a"}), min_size=1, max_size=2)
_VERSIONS = st.lists(
    st.builds(
        lambda name, others: {"name": name, "served": True, "storage": name == "v1", **others},
        st.sampled_from(["v1", "v2", "v3"]),
        _optional(
            deprecated=st.just(True),
            schema=st.sampled_from([SCHEMA, OTHER, {}, {"openAPIV3Schema": {"default": 1}}]),
            subresources=st.sampled_from([{"status": {}}, {}]),
            additionalPrinterColumns=_COLUMNS,
            selectableFields=st.just([{"jsonPath": ".a"}]),
        ),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda version: version["name"],
)
_WEBHOOK = {"strategy": "Webhook", "webhook": {"clientConfig": CLIENT, "conversionReviewVersions": ["v1", "v1beta1"]}}


@given(
    _VERSIONS, st.sampled_from([{"strategy": "None"}, _WEBHOOK]), st.sampled_from([{}, {"preserveUnknownFields": True}])
)
def test_a_definition_is_the_same_after_it_was_stored(
    versions: list[dict[str, Any]], conversion: dict[str, Any], unknown: dict[str, Any]
) -> None:
    spec = {"group": "x", "names": NAMES, "scope": "Cluster", "versions": versions, "conversion": conversion, **unknown}
    stored = to_v1beta1(_definition(spec))
    assert orjson.loads(stored)["apiVersion"] == V1BETA1
    assert orjson.loads(to_v1(stored)) == orjson.loads(_definition(spec))


def test_a_schema_that_versions_share_is_stored_once() -> None:
    other_order = {"openAPIV3Schema": {"description": "other", "type": "object"}}
    versions = [{**V1_VERSION, "schema": OTHER}, {**V2_VERSION, "schema": other_order}]
    spec = orjson.loads(to_v1beta1(_definition({"names": NAMES, "versions": versions})))["spec"]
    assert spec["validation"] == OTHER
    assert spec["versions"] == [V1_VERSION, V2_VERSION]
    assert spec["version"] == "v1"
    assert spec["preserveUnknownFields"] is False


@pytest.mark.parametrize("schemas", [(SCHEMA, OTHER), (SCHEMA, None), ({"default": True}, {"default": 1})])
def test_schemas_that_differ_are_stored_with_their_versions(schemas: tuple[Any, Any]) -> None:
    versions = [
        {**version, "schema": schema} if schema else version
        for version, schema in zip((V1_VERSION, V2_VERSION), schemas, strict=True)
    ]
    spec = orjson.loads(to_v1beta1(_definition({"names": NAMES, "versions": versions})))["spec"]
    assert spec["versions"] == versions
    assert "validation" not in spec
