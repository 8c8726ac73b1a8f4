"""The four types of patches."""

from __future__ import annotations

from typing import Any

import pytest

from integration.endpoints.serving import Api
from support.calls import Answer

MAPS = "/api/v1/namespaces/n/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/n/deployments"
TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


async def patch(api: Api, kind: str, target: str, body: Any) -> Answer:
    return await api("PATCH", target, body, content_type=TYPES[kind])


async def make(api: Api, **data: str) -> Answer:
    return await api("POST", MAPS, {"metadata": {"name": "a"}, "data": data})


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("merge", {"data": {"k": "w", "gone": None}}),
        ("json", [{"op": "replace", "path": "/data/k", "value": "w"}, {"op": "remove", "path": "/data/gone"}]),
        ("strategic", {"data": {"k": "w", "gone": None}}),
    ],
)
async def test_a_patch_changes_only_its_fields(api: Api, kind: str, body: Any) -> None:
    await make(api, k="v", gone="x", kept="y")
    answer = await patch(api, kind, f"{MAPS}/a", body)
    assert (answer.status, answer.json["data"]) == (200, {"k": "w", "kept": "y"})


async def test_an_apply_creates_then_owns_then_conflicts(api: Api) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    assert (await patch(api, "apply", f"{MAPS}/a?fieldManager=one", config)).status == 201
    taken = await patch(api, "apply", f"{MAPS}/a?fieldManager=two", {**config, "data": {"k": "w"}})
    assert (taken.status, taken.json["message"]) == (409, 'Apply failed with 1 conflict: conflict with "one": .data.k')
    forced = await patch(api, "apply", f"{MAPS}/a?fieldManager=two&force=true", {**config, "data": {"k": "w"}})
    assert [entry["manager"] for entry in forced.json["metadata"]["managedFields"]] == ["two"]


async def test_only_an_apply_creates(api: Api) -> None:
    assert (await patch(api, "merge", f"{MAPS}/none", {})).status == 404


async def test_a_subresource_cannot_be_created_by_apply(api: Api) -> None:
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    assert (await patch(api, "apply", f"{DEPLOYMENTS}/d/status?fieldManager=m", body)).status == 404


async def test_a_resource_version_in_a_patch_is_a_precondition(api: Api) -> None:
    made = await make(api, k="v")
    await patch(api, "merge", f"{MAPS}/a", {"data": {"k": "w"}})
    answer = await patch(
        api, "merge", f"{MAPS}/a", {"metadata": {"resourceVersion": made.json["metadata"]["resourceVersion"]}}
    )
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")


async def test_a_type_error_quotes_the_patched_object(api: Api) -> None:
    await make(api, k="v")
    answer = await patch(api, "merge", f"{MAPS}/a", {"data": {"k": 5}})
    assert answer.status == 422
    assert answer.json["message"].startswith(
        ' "" is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"v1\\",\\"data\\":{\\"k\\":5}'
    )
    strategic = await patch(api, "strategic", f"{MAPS}/a", {"data": ["k"]})
    assert (
        strategic.json["message"]
        == ' "" is invalid: patch: Invalid value: "map[data:[k]]": cannot restore map from slice'
    )


@pytest.mark.parametrize(
    ("kind", "body"),
    [("merge", {"data": {"k": ["<&>"]}}), ("json", [{"op": "add", "path": "/data/k", "value": ["<&>"]}])],
)
async def test_quoted_objects_are_encoded_like_go_json(api: Api, kind: str, body: Any) -> None:
    await make(api, k="v")
    answer = await patch(api, kind, f"{MAPS}/a", body)
    assert r"\"k\":[\"\\u003c\\u0026\\u003e\"]" in answer.json["message"]


async def test_strict_patches_are_rejected_and_others_warn(api: Api) -> None:
    await make(api, k="v")
    rejected = await patch(api, "strategic", f"{MAPS}/a?fieldValidation=Strict", {"bogus": 1, "metadata": {"more": 2}})
    assert 'strict decoding error: unknown field "bogus", unknown field "metadata.more"' in rejected.json["message"]
    warned = await patch(api, "json", f"{MAPS}/a", [{"op": "add", "path": "/data/n", "value": "1", "note": "x"}])
    assert warned.warnings == ['json patch unknown field "[0].note"']


@pytest.mark.parametrize("kind", ["merge", "json", "strategic"])
async def test_invalid_json_is_rejected(api: Api, kind: str) -> None:
    await make(api, k="v")
    answer = await patch(api, kind, f"{MAPS}/a", b"{")
    assert (answer.status, answer.json["message"]) == (400, "invalid JSON patch")


async def test_the_name_cannot_be_patched(api: Api) -> None:
    await make(api, k="v")
    answer = await patch(api, "json", f"{MAPS}/a", [{"op": "remove", "path": "/metadata/name"}])
    assert answer.json["message"] == "the name of the object (a based on URL) was undeterminable: name must be provided"


async def test_other_media_types_are_unsupported(api: Api) -> None:
    answer = await api("PATCH", f"{MAPS}/a", {}, content_type="application/json")
    assert (answer.status, answer.json["message"], answer.json["details"]) == (415, "415: Unsupported Media Type", {})


async def test_concurrent_patches_all_take_effect(api: Api) -> None:
    import asyncio

    await make(api)
    answers = await asyncio.gather(*(patch(api, "merge", f"{MAPS}/a", {"data": {f"k{i}": "v"}}) for i in range(8)))
    assert {answer.status for answer in answers} == {200}
    assert len((await api("GET", f"{MAPS}/a")).json["data"]) == 8
