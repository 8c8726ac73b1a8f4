"""Discovery documents of external API servers, in both forms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tetrapod.aggregator.external_documents import read_aggregated, read_classic
from tetrapod.machinery.gvk import GroupVersion

GV = GroupVersion("g", "v1")
NO_KIND = {"group": "", "version": "", "kind": ""}


def classic(*resources: Any) -> Any:
    return read_classic(GV, json.dumps({"resources": list(resources)}).encode())


def test_subresources_are_listed_below_their_resource() -> None:
    found = classic(
        {
            "name": "things/scale",
            "namespaced": True,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "verbs": ["update"],
        },
        {
            "name": "things",
            "singularName": "thing",
            "namespaced": True,
            "kind": "Thing",
            "verbs": ["get"],
            "shortNames": ["t"],
        },
    )
    scale = {
        "subresource": "scale",
        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "verbs": ["update"],
    }
    assert found == {
        "version": "v1",
        "resources": [
            {
                "resource": "things",
                "responseKind": {"group": "", "version": "", "kind": "Thing"},
                "scope": "Namespaced",
                "singularResource": "thing",
                "verbs": ["get"],
                "shortNames": ["t"],
                "subresources": [scale],
            }
        ],
    }


def test_a_subresource_without_its_resource_makes_one() -> None:
    (found,) = classic({"name": "things/status", "verbs": ["get"]})["resources"]
    assert (found["resource"], found["scope"], found["verbs"], found["responseKind"]) == (
        "things",
        "Cluster",
        None,
        NO_KIND,
    )


def test_a_subresource_of_another_scope_is_rejected() -> None:
    with pytest.raises(ValueError, match="do not match"):
        classic({"name": "things", "namespaced": True}, {"name": "things/status"})


def test_a_server_without_resources_has_none() -> None:
    assert classic() == {"version": "v1"}
    assert read_classic(GV, b'{"resources": null}') == {"version": "v1"}


def aggregated(version: Any) -> Any:
    return read_aggregated(json.dumps({"items": [{"metadata": {"name": "g"}, "versions": [version]}]}).encode())[GV]


def test_missing_fields_are_defaulted_and_unknown_ones_dropped() -> None:
    resource = {"resource": "things", "odd": 1, "subresources": [{"subresource": "status"}]}
    assert aggregated({"version": "v1", "freshness": "Stale", "resources": [resource]}) == {
        "version": "v1",
        "resources": [
            {
                "resource": "things",
                "responseKind": NO_KIND,
                "scope": "",
                "singularResource": "",
                "verbs": None,
                "subresources": [{"subresource": "status", "responseKind": NO_KIND, "verbs": None}],
            }
        ],
    }


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items": 1}', b'{"items": [{"versions": [{"version": 1}]}]}'])
def test_other_documents_are_rejected(body: bytes) -> None:
    with pytest.raises(ValueError):
        read_aggregated(body)
