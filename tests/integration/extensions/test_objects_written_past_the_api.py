"""Custom resources that another program wrote to the store are served as their definition describes them."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest

from integration.extensions.cluster import Cluster, definition
from support.definitions import version

WIDGETS: Final = "/apis/example.com/v1/namespaces/default/widgets"
KEY: Final = "/registry/example.com/widgets/default/w"
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "color": {"type": "string", "default": "red"},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}


def malformed(**more: Any) -> dict[str, Any]:
    """Return metadata with an unknown field, a malformed map and labels that are invalid but of the right type."""
    return {"unknown": 42, "annotations": {"a": 1, "b": "x"}, "labels": {"invalid": "x y"}, **more}


WRITTEN: Final = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": malformed(name="w", namespace="default", generation=None),
    "size": 3,
    "unspecified": "x",
    "template": {"apiVersion": "v1", "kind": "Pod", "metadata": malformed(), "any": 1},
}


async def test_an_object_written_past_the_api_is_pruned_and_repaired_when_it_is_read(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA)))
    assert (await cluster.get(WIDGETS)).json["items"] == []
    await cluster.backend.put_if(KEY, orjson.dumps(WRITTEN), 0)
    answer = await cluster.get(f"{WIDGETS}/w")
    assert answer.status == 200, answer.body
    obj = answer.json
    metadata = obj.pop("metadata")
    del metadata["resourceVersion"]
    assert metadata == {"name": "w", "namespace": "default", "labels": {"invalid": "x y"}, "generation": 1}
    assert obj == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "size": 3,
        "color": "red",
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"invalid": "x y"}}, "any": 1},
    }
    [listed] = (await cluster.get(WIDGETS)).json["items"]
    assert "unspecified" not in listed


async def test_an_object_with_malformed_metadata_can_be_corrected_and_deleted(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA)))
    await cluster.backend.put_if(KEY, orjson.dumps(WRITTEN), 0)
    obj = (await cluster.get(f"{WIDGETS}/w")).json
    assert (await cluster.call("PUT", f"{WIDGETS}/w", obj)).status == 422
    obj["metadata"]["labels"] = obj["template"]["metadata"]["labels"] = {"valid": "x"}
    answer = await cluster.call("PUT", f"{WIDGETS}/w", obj)
    assert answer.status == 200, answer.body
    obj["template"]["metadata"]["labels"] = {"valid": 42}
    assert (await cluster.call("PUT", f"{WIDGETS}/w", obj)).status in (400, 422)
    assert (await cluster.call("DELETE", f"{WIDGETS}/w")).status == 200


@pytest.mark.parametrize("api_version", ["a/b/c", 5])
async def test_an_object_with_a_malformed_version_is_reported_and_harms_no_other(
    cluster: Cluster, api_version: Any
) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA)))
    other = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "other"}, "size": 1}
    assert (await cluster.call("POST", WIDGETS, other)).status == 201
    await cluster.backend.put_if(KEY, orjson.dumps({**WRITTEN, "apiVersion": api_version}), 0)
    answer = await cluster.get(f"{WIDGETS}/w")
    assert (answer.status, answer.json["kind"], answer.json["reason"]) == (500, "Status", "InternalError")
    if api_version == "a/b/c":
        assert "unexpected GroupVersion string: a/b/c" in answer.json["message"]
    assert (await cluster.get(f"{WIDGETS}/other")).status == 200
    listed = await cluster.get(WIDGETS)  # as upstream, while the watch cache cannot be filled
    assert (listed.status, listed.json["reason"]) == (429, "TooManyRequests")
