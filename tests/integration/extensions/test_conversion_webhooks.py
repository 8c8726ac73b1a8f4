"""Conversion webhooks: a real TLS server converts objects, or returns a prepared response.

The error messages are those of kube-apiserver.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from integration.extensions.cluster import APPLY, CRDS, MERGE, Cluster, definition
from support.definitions import version
from support.waiting import until
from support.webhook import HOLD, Answer, WebhookServer, webhook_server

V1, V2 = (f"/apis/example.com/{v}/namespaces/ns/widgets" for v in ("v1", "v2"))
Change = Callable[[Any], Any]


@pytest.fixture
def hook() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        server.on("/convert", convert)
        yield server


def convert(review: Any, change: Change | None = None) -> Any:
    """v1 calls a field `two` that v2 calls `one`, and each version has a field of its own."""
    wanted = review["request"]["desiredAPIVersion"]
    objects = []
    for given in review["request"]["objects"]:
        obj = copy.deepcopy(given)
        obj["apiVersion"], spec = wanted, obj.setdefault("spec", {})
        old, new = ("two", "one") if wanted.endswith("/v1") else ("one", "two")
        if old in spec:
            spec[new] = spec.pop(old)
        objects.append(obj if change is None else change(obj))
    return answer(review, convertedObjects=objects, result={"status": "Success"})


def answer(review: Any, **response: Any) -> Any:
    return {
        "kind": "ConversionReview",
        "apiVersion": review["apiVersion"],
        "response": {"uid": review["request"]["uid"], **response},
    }


def field(name: str) -> Any:
    spec = {"type": "object", "properties": {name: {"type": "integer", "maximum": 9}}}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "properties": {"spec": spec, "status": status}}


async def define(cluster: Cluster, hook: WebhookServer, **webhook: Any) -> Any:
    crd = definition(
        "Widget",
        version("v1", schema=field("one"), subresources={"status": {}}),
        version("v2", schema=field("two"), storage=False, subresources={"status": {}}),
    )
    declared = {"clientConfig": hook.config("/convert"), "conversionReviewVersions": ["v1"], **webhook}
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": declared}
    return await cluster.define(crd)


def widget(api: str, name: str = "w", **spec: Any) -> Any:
    return {"apiVersion": f"example.com/{api}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


async def test_each_version_reads_and_writes_its_own_fields(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    await cluster.create(V1, widget("v1", one=1))
    assert (await cluster.get(f"{V2}/w")).json["spec"] == {"two": 1}
    patched = await cluster.call("PATCH", f"{V2}/w", {"spec": {"two": 2}}, content_type=MERGE)
    assert (patched.status, patched.json["apiVersion"], patched.json["spec"]) == (200, "example.com/v2", {"two": 2})
    assert (await cluster.get(f"{V1}/w")).json["spec"] == {"one": 2}
    made = await cluster.create(V2, widget("v2", "x", two=3))
    assert (made["apiVersion"], made["spec"]) == ("example.com/v2", {"two": 3})
    gone = await cluster.call("DELETE", f"{V2}/x")
    assert (gone.status, gone.json["status"]) == (200, "Success")


async def test_an_object_is_validated_by_the_schema_of_the_request(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    rejected = await cluster.call("POST", V2, widget("v2", two=10))
    assert (rejected.status, rejected.json["details"]["causes"][0]["field"]) == (422, "spec.two")


async def test_a_list_is_converted_in_one_call_and_once(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    for i in range(5):
        await cluster.create(V1, widget("v1", f"w{i}", one=i))
    for _ in range(2):
        listed = (await cluster.get(V2)).json
        assert [item["spec"]["two"] for item in listed["items"]] == [0, 1, 2, 3, 4]
    assert [len(review["request"]["objects"]) for _, _, review in hook.seen] == [5]
    request = hook.seen[0][2]["request"]
    assert request["desiredAPIVersion"] == "example.com/v2"
    assert "resourceVersion" not in request["objects"][0]["metadata"]
    assert hook.seen[0][0] == "POST /convert?timeout=30s"


async def test_a_watch_delivers_its_version(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    await cluster.create(V1, widget("v1", one=1))
    async with cluster.watch(f"{V2}?watch=1&resourceVersion=0") as watching:
        first = await watching.event()
        await cluster.call("PATCH", f"{V1}/w", {"spec": {"one": 2}}, content_type=MERGE)
        second = await watching.event()
        await cluster.call("DELETE", f"{V1}/w")
        last = await watching.event()
    assert [(e["type"], e["object"]["apiVersion"], e["object"]["spec"]["two"]) for e in (first, second, last)] == [
        ("ADDED", "example.com/v2", 1),
        ("MODIFIED", "example.com/v2", 2),
        ("DELETED", "example.com/v2", 2),
    ]


async def test_a_watch_whose_events_cannot_be_converted_ends_with_the_reason(
    cluster: Cluster, hook: WebhookServer
) -> None:
    await define(cluster, hook)
    async with cluster.watch(f"{V2}?watch=1&resourceVersion=0") as watching:
        hook.on("/convert", lambda r: answer(r, result={"status": "Failure", "message": "no can do"}))
        await cluster.create(V1, widget("v1", one=1))
        event = await watching.event()
        await asyncio.wait_for(watching.ended.wait(), 5)
    assert (event["type"], event["object"]["reason"]) == ("ERROR", "InternalError")
    assert "no can do" in event["object"]["message"]


async def test_managers_of_other_versions_lose_fields_that_an_apply_changes(
    cluster: Cluster, hook: WebhookServer
) -> None:
    await define(cluster, hook)
    applied = {"content_type": APPLY}
    assert (await cluster.call("PATCH", f"{V2}/w?fieldManager=m2", widget("v2", two=1), **applied)).status == 201
    rejected = await cluster.call("PATCH", f"{V1}/w?fieldManager=m1", widget("v1", one=2), **applied)
    assert (rejected.status, rejected.json["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "m2": .spec.two',
    )
    forced = await cluster.call("PATCH", f"{V1}/w?fieldManager=m1&force=true", widget("v1", one=2), **applied)
    owners = {e["manager"]: e["fieldsV1"] for e in forced.json["metadata"]["managedFields"]}
    assert owners["m1"] == {"f:spec": {"f:one": {}}}
    assert "f:two" not in str(owners.get("m2"))


async def test_status_updates_are_converted(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    await cluster.create(V1, widget("v1", one=1))
    answered = await cluster.call("PATCH", f"{V2}/w/status", {"status": {"s": 1}}, content_type=MERGE)
    assert (answered.json["spec"], answered.json["status"]) == ({"two": 1}, {"s": 1})


async def test_v1beta1_reviews_are_checked_less_strictly(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook, conversionReviewVersions=["v1beta1", "v1"])
    hook.on(
        "/convert",
        lambda r: {
            "response": convert(r)["response"]["convertedObjects"] and {**convert(r)["response"], "uid": "other"}
        },
    )
    await cluster.create(V1, widget("v1", one=1))
    assert (await cluster.get(f"{V2}/w")).json["spec"] == {"two": 1}
    assert hook.seen[0][2]["apiVersion"] == "apiextensions.k8s.io/v1beta1"


def _metadata(**changed: Any) -> Callable[[Any], Any]:
    return lambda review: convert(review, lambda obj: {**obj, "metadata": {**obj["metadata"], **changed}})


_FROM = "conversion webhook for example.com/v2, Kind=Widget"
BAD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "failure": (
        lambda r: answer(r, result={"status": "Failure", "message": "no can do"}),
        f"{_FROM} failed: no can do",
    ),
    "no message": (
        lambda r: answer(r, result={"status": "Failure"}),
        f"{_FROM} failed: response.result.status was 'Failure', not 'Success'",
    ),
    "no response": (
        lambda r: {"kind": "ConversionReview", "apiVersion": r["apiVersion"]},
        f"{_FROM} failed: no response provided",
    ),
    "no kind": (
        lambda r: {"response": convert(r)["response"]},
        f"{_FROM} failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
    ),
    "another version of reviews": (
        lambda r: {**convert(r), "apiVersion": "apiextensions.k8s.io/v1beta1"},
        f"{_FROM} failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
    ),
    "none": (
        lambda r: answer(r, convertedObjects=[], result={"status": "Success"}),
        f"{_FROM} returned 0 objects, expected 1",
    ),
    "null": (
        lambda r: answer(r, convertedObjects=[None], result={"status": "Success"}),
        "unexpected end of JSON input",
    ),
    "a string": (
        lambda r: answer(r, convertedObjects=["x"], result={"status": "Success"}),
        "json: cannot unmarshal string into Go value of type map[string]interface {}",
    ),
    "not converted": (
        lambda r: answer(r, convertedObjects=r["request"]["objects"], result={"status": "Success"}),
        (
            f"{_FROM} returned invalid object at index 0: invalid groupVersion (expected example.com/v1, "
            "received example.com/v2)"
        ),
    ),
    "another kind": (
        lambda r: convert(r, lambda obj: {**obj, "kind": "Other"}),
        f"{_FROM} returned invalid object at index 0: invalid kind (expected Widget, received Other)",
    ),
    "another name": (_metadata(name="z"), f"{_FROM} returned invalid object: must have the same name: w != z"),
    "another namespace": (
        _metadata(namespace="z"),
        f"{_FROM} returned invalid object: must have the same namespace: ns != z",
    ),
    "labels that are none": (
        _metadata(labels="x"),
        f"{_FROM} returned invalid metadata: invalid metadata.labels of type string in converted object",
    ),
    "labels of numbers": (
        _metadata(labels={"a": 1}),
        f"{_FROM} returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
    ),
    "an error": (
        lambda r: Answer(500, b"boom", {"content-type": "text/plain"}),
        f'{_FROM} failed: an error on the server ("boom") has prevented the request from succeeding',
    ),
}


@pytest.mark.parametrize("case", BAD)
async def test_invalid_responses_are_reported_with_upstreams_message(
    cluster: Cluster, hook: WebhookServer, case: str
) -> None:
    await define(cluster, hook)
    respond, text = BAD[case]
    hook.on("/convert", respond)
    rejected = await cluster.call("POST", V2, widget("v2", two=1))
    assert (rejected.status, rejected.json["message"]) == (500, text)
    assert (await cluster.get(f"{V1}/w")).status == 404


async def test_other_metadata_is_kept_despite_the_webhook(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    hook.on("/convert", _metadata(finalizers=["x/y"], resourceVersion="999", labels={"a": "b"}))
    await cluster.create(V1, widget("v1", one=1))
    metadata = (await cluster.get(f"{V2}/w")).json["metadata"]
    assert ("finalizers" in metadata, metadata["labels"], metadata["resourceVersion"] != "999") == (
        False,
        {"a": "b"},
        True,
    )


async def test_unconvertible_objects_are_reported_as_corrupt_and_not_deleted(
    cluster: Cluster, hook: WebhookServer
) -> None:
    await define(cluster, hook)
    await cluster.create(V1, widget("v1", one=1))
    hook.on("/convert", lambda r: answer(r, result={"status": "Failure", "message": "no can do"}))
    rejected = await cluster.get(f"{V2}/w")
    text = (
        "StorageError: corrupt object, Code: 7, Key: /example.com/widgets/ns/w, ResourceVersion: 0, "
        "AdditionalErrorMsg: object not"
    )
    assert (rejected.status, text in rejected.json["message"]) == (500, True)
    assert (await cluster.call("DELETE", f"{V2}/w")).status == 500
    assert (await cluster.get(f"{V1}/w")).status == 200


async def test_a_list_with_a_limit_names_all_unconvertible_objects(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    for name in ("a", "b", "c"):
        await cluster.create(V1, widget("v1", name, one=1))
    hook.on("/convert", lambda r: answer(r, result={"status": "Failure", "message": "no can do"}))

    rejected = await cluster.get(f"{V2}?limit=1")

    keys = [f"/registry/example.com/widgets/ns/{name}" for name in ("a", "b", "c")]
    details = rejected.json["details"]
    assert (rejected.status, rejected.json["reason"]) == (500, "StorageReadError")
    assert (details["name"], details["group"], details["kind"]) == ("list", "example.com", "widgets")
    assert [cause["field"] for cause in details["causes"]] == keys
    assert rejected.json["message"].startswith("failed to read one or more widgets.example.com from the storage: ")
    assert rejected.json["message"].endswith("no can do (and 2 more)")


async def test_a_list_names_only_the_objects_that_the_webhook_rejects(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    for name in ("a", "b"):
        await cluster.create(V1, widget("v1", name, one=1))

    def convert_but_b(review: Any) -> Any:
        if any(obj["metadata"]["name"] == "b" for obj in review["request"]["objects"]):
            return answer(review, result={"status": "Failure", "message": "no can do"})
        return convert(review)

    hook.on("/convert", convert_but_b)

    rejected = await cluster.get(f"{V2}?limit=2")

    assert rejected.status == 500
    assert [cause["field"] for cause in rejected.json["details"]["causes"]] == ["/registry/example.com/widgets/ns/b"]


@pytest.mark.parametrize(
    "query", ["", "?labelSelector=!x", "?limit=1&fieldSelector=metadata.name%3Dw", "?resourceVersion=0"]
)
async def test_other_lists_of_unconvertible_objects_are_to_be_repeated(
    cluster: Cluster, hook: WebhookServer, query: str
) -> None:
    await define(cluster, hook)
    await cluster.create(V1, widget("v1", one=1))
    hook.on("/convert", lambda r: answer(r, result={"status": "Failure", "message": "no can do"}))

    rejected = await cluster.get(f"{V2}{query}")

    assert (rejected.status, rejected.json["reason"]) == (429, "TooManyRequests")
    assert rejected.json["details"] == {"retryAfterSeconds": 1}
    text = "storage is (re)initializing: failed to list <unspecified>: failed to read one or more widgets.example.com"
    assert rejected.json["message"].startswith(text)
    assert rejected.json["message"].endswith("no can do")


async def test_converted_objects_are_pruned_and_defaulted_like_decoded_ones(
    cluster: Cluster, hook: WebhookServer
) -> None:
    await define(cluster, hook)
    await cluster.create(V1, widget("v1", one=1))
    made = {"status": {"whole": 1.0, "great": 12345678901234567890}, "spec": {"two": None, "more": 1}}
    hook.on(
        "/convert", lambda r: convert(r, lambda obj: {**obj, **made, "metadata": {**obj["metadata"], "labels": {}}})
    )
    shown = (await cluster.get(f"{V2}/w")).json
    assert (shown["spec"], shown["status"], "labels" in shown["metadata"]) == (
        {},
        {"whole": 1, "great": 12345678901234567000},
        False,
    )


async def test_changing_an_unconvertible_object_reports_the_conversion_error(
    cluster: Cluster, hook: WebhookServer
) -> None:
    await define(cluster, hook)
    await cluster.create(V1, widget("v1", one=1))
    hook.on("/convert", lambda r: answer(r, result={"status": "Failure", "message": "no can do"}))
    rejected = await cluster.call("PATCH", f"{V2}/w", {"spec": {"two": 2}}, content_type=MERGE)
    assert rejected.status == 500
    assert rejected.json["message"].startswith("object not decodable revision=")
    assert rejected.json["message"].endswith(": conversion webhook for example.com/v1, Kind=Widget failed: no can do")


async def test_a_hanging_webhook_does_not_delay_other_requests(cluster: Cluster, hook: WebhookServer) -> None:
    await define(cluster, hook)
    await cluster.create(V1, widget("v1", one=1))
    hook.on("/convert", lambda r: HOLD)
    waiting = asyncio.create_task(cluster.get(f"{V2}/w"))
    await asyncio.to_thread(until, lambda: hook.seen)
    async with asyncio.timeout(5):
        for _ in range(20):
            assert (await cluster.get(f"{V1}/w")).status == 200
    assert not waiting.done()
    waiting.cancel()


async def test_a_new_storage_version_reads_objects_of_the_former_one(cluster: Cluster, hook: WebhookServer) -> None:
    crd = await define(cluster, hook)
    await cluster.create(V1, widget("v1", one=1))
    for declared in crd["spec"]["versions"]:
        declared["storage"] = declared["name"] == "v2"
    name = crd["metadata"]["name"]
    changed = await cluster.call(
        "PATCH", f"{CRDS}/{name}", {"spec": {"versions": crd["spec"]["versions"]}}, content_type=MERGE
    )
    assert changed.json["status"]["storedVersions"] == ["v1", "v2"]
    assert (await cluster.get(f"{V1}/w")).json["spec"] == {"one": 1}
    assert (await cluster.get(f"{V2}/w")).json["spec"] == {"two": 1}
