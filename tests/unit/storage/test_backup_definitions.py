"""Tests of CRDs that a stock kube-apiserver stored in v1beta1: they are converted to the v1 that it would serve."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.generic.storage.backup.definitions import VERSION, to_v1

SCHEMA = {"openAPIV3Schema": {"type": "object"}}
CLIENT = {"url": "https://x"}
OTHER = {"openAPIV3Schema": {"type": "object", "description": "other"}}
NAMES = {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"}
SET = {"names": NAMES, "scope": "Cluster", "preserveUnknownFields": False}
DEFAULTS = {"names": NAMES, "scope": "Cluster", "conversion": {"strategy": "None"}}
V1, V2 = {"name": "v1", "served": True, "storage": True}, {"name": "v2", "served": True, "storage": False}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"version": "v1", "versions": [V1, V2], "validation": SCHEMA},
            {"versions": [{**V1, "schema": SCHEMA}, {**V2, "schema": SCHEMA}]},
        ),
        (
            {
                "version": "v1",
                "versions": [{**V1, "schema": SCHEMA}, {**V2, "schema": OTHER}],
                "preserveUnknownFields": False,
            },
            {"versions": [{**V1, "schema": SCHEMA}, {**V2, "schema": OTHER}]},
        ),
        ({"version": "v1"}, {"versions": [V1]}),
        (
            {"versions": [V1], "additionalPrinterColumns": [{"name": "a", "type": "string", "JSONPath": ".a"}]},
            {"versions": [{**V1, "additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": ".a"}]}]},
        ),
        (
            {
                "versions": [V1],
                "subresources": {"status": {}},
                "conversion": {
                    "strategy": "Webhook",
                    "webhookClientConfig": CLIENT,
                    "conversionReviewVersions": ["v1"],
                },
            },
            {
                "versions": [{**V1, "subresources": {"status": {}}}],
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {"clientConfig": CLIENT, "conversionReviewVersions": ["v1"]},
                },
            },
        ),
        (
            {"versions": [V1], "conversion": {"strategy": "None"}},
            {"versions": [V1], "conversion": {"strategy": "None"}},
        ),
    ],
)
def test_what_versions_share_is_reported_each(spec: dict[str, Any], wanted: dict[str, Any]) -> None:
    definition = {"apiVersion": VERSION, "kind": "CustomResourceDefinition", "metadata": {"name": "a"}}
    assert to_v1({**definition, "spec": {**SET, **spec}}) == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "a"},
        "spec": {**DEFAULTS, **wanted},
        "status": {"storedVersions": ["v1"]},
    }


def test_unset_fields_have_the_defaults_of_v1beta1() -> None:
    spec = {"version": "v1", "names": {"plural": "as", "kind": "A"}, "conversion": {"strategy": "Webhook"}}
    assert to_v1({"apiVersion": VERSION, "kind": "CustomResourceDefinition", "metadata": {}, "spec": spec})["spec"] == {
        "versions": [V1],
        "names": NAMES,
        "scope": "Namespaced",
        "preserveUnknownFields": True,
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1beta1"]}},
    }
