"""The classic form made into the aggregated one."""

from __future__ import annotations

from tetrapod.aggregator.discovery_fallback import from_resource_list
from tetrapod.machinery.gvk import GroupVersion


def test_subresources_go_below_their_resource() -> None:
    document = {
        "resources": [
            {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get"], "shortNames": ["t"]},
            {"name": "things/scale", "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["update"]},
        ]
    }
    assert from_resource_list(GroupVersion("g", "v1"), document) == {
        "version": "v1",
        "resources": [
            {
                "resource": "things",
                "responseKind": {"group": "g", "version": "v1", "kind": "Thing"},
                "scope": "Namespaced",
                "singularResource": "thing",
                "verbs": ["get"],
                "shortNames": ["t"],
                "subresources": [
                    {
                        "subresource": "scale",
                        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                        "verbs": ["update"],
                    }
                ],
            }
        ],
        "freshness": "Current",
    }


def test_a_server_without_resources_is_current_all_the_same() -> None:
    assert from_resource_list(GroupVersion("g", "v1"), {}) == {"version": "v1", "freshness": "Current"}
