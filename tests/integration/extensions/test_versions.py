"""Versions with their own schemas, without a webhook. The expectations are responses of kube-apiserver."""

from __future__ import annotations

from typing import Any

from integration.extensions.cluster import APPLY, CRDS, MERGE, Cluster, definition
from support.definitions import version

V1, V2 = (f"/apis/example.com/{v}/namespaces/ns/widgets" for v in ("v1", "v2"))
CRD = f"{CRDS}/widgets.example.com"


def schema(*names: str, default: str = "") -> Any:
    fields: dict[str, Any] = {name: {"type": "string"} for name in names}
    if default:
        fields["told"] = {"type": "string", "default": default}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


def versions(stored: str, told: str = "by v2") -> list[Any]:
    return [
        version("v1", storage=stored == "v1", schema=schema("one", "both", default="by v1")),
        version("v2", storage=stored == "v2", schema=schema("two", "both", default=told)),
    ]


def widget(api: str, name: str = "w", **spec: Any) -> Any:
    return {"apiVersion": f"example.com/{api}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


async def store_in(cluster: Cluster, stored: str, **told: str) -> None:
    patch = {"spec": {"versions": versions(stored, **told)}}
    assert (await cluster.call("PATCH", CRD, patch, content_type=MERGE)).status == 200


async def test_objects_are_readable_in_the_version_they_were_stored_in(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", *versions("v1")))
    await cluster.create(V1, widget("v1", one="1", both="b"))
    await store_in(cluster, "v2")
    assert (await cluster.get(f"{V1}/w")).json["spec"] == {"one": "1", "both": "b", "told": "by v1"}
    assert (await cluster.get(f"{V2}/w")).json["spec"] == {"both": "b", "told": "by v1"}
    same = await cluster.call("PATCH", f"{V1}/w", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    assert same.json["metadata"]["generation"] == 1
    rewritten = await cluster.get(f"{V1}/w")
    assert "one" not in rewritten.json["spec"]


async def test_a_dry_run_returns_the_fields_that_the_stored_version_keeps(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", *versions("v2")))
    for query in ("?dryRun=All", ""):
        made = await cluster.call("POST", V1 + query, widget("v1", one="1", both="b"))
        assert (made.status, made.json["spec"]) == (201, {"both": "b", "told": "by v1"})


async def test_current_defaults_of_the_stored_version_apply(cluster: Cluster) -> None:
    unsaid = [version("v1", storage=False, schema=schema("both")), versions("v2")[1]]
    await cluster.define(definition("Widget", *unsaid))
    await cluster.create(V1, widget("v1", both="b"))
    assert (await cluster.get(f"{V2}/w")).json["spec"]["told"] == "by v2"
    unsaid[1] = versions("v2", told="later")[1]
    assert (await cluster.call("PATCH", CRD, {"spec": {"versions": unsaid}}, content_type=MERGE)).status == 200
    assert (await cluster.get(f"{V2}/w")).json["spec"]["told"] == "later"


def part(*defaulted: str) -> Any:
    fields = {name: {"type": "string"} for name in "abc"}
    return {
        "type": "object",
        "properties": {k: {**v, "default": k} if k in defaulted else v for k, v in fields.items()},
    }


async def test_an_update_sets_defaults_of_its_version_only_in_the_part_that_it_updates(cluster: Cluster) -> None:
    def with_defaults(name: str, *defaulted: str) -> Any:
        parts = {"spec": part(*defaulted), "status": part(*defaulted)}
        declared = version(name, storage=name == "v2", schema={"type": "object", "properties": parts})
        return {**declared, "subresources": {"status": {}}}

    await cluster.define(definition("Widget", with_defaults("v1", "a"), with_defaults("v2", "b")))
    made = await cluster.create(V1, {**widget("v1"), "status": {}})
    assert (made["spec"], "status" in made) == ({"a": "a", "b": "b"}, False)
    patch = {"spec": {"versions": [with_defaults("v1", "a", "c"), with_defaults("v2", "b")]}}
    assert (await cluster.call("PATCH", CRD, patch, content_type=MERGE)).status == 200
    updated = await cluster.call("PUT", f"{V1}/w/status", {**made, "status": {}})
    assert (updated.json["spec"], updated.json["status"]) == (
        {"a": "a", "b": "b"},
        {"a": "a", "b": "b", "c": "c"},
    )
    replaced = await cluster.call("PUT", f"{V1}/w", {**updated.json, "spec": {}, "status": {}})
    assert (replaced.json["spec"], replaced.json["status"]) == (
        {"a": "a", "b": "b", "c": "c"},
        {"a": "a", "b": "b", "c": "c"},
    )


async def test_unknown_fields_are_reported_before_a_body_of_another_version_is_rejected(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", *versions("v1")))
    for api, text in (
        ("v2", 'strict decoding error: unknown field "spec.one"'),
        ("v9", 'strict decoding error: unknown field "spec"'),
    ):
        rejected = await cluster.call("POST", f"{V1}?fieldValidation=Strict", widget(api, one="1"))
        assert (rejected.status, rejected.json["message"].endswith(text)) == (400, True)
    rejected = await cluster.call("POST", f"{V1}?fieldValidation=Strict", widget("v2", two="1"))
    assert "does not match the expected API version" in rejected.json["message"]


async def test_an_applied_scale_without_metadata_is_rejected(cluster: Cluster) -> None:
    scale = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
    await cluster.define(definition("Widget", version("v1", subresources=scale)))
    await cluster.create(V1, widget("v1", replicas=1))
    applied = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}}
    rejected = await cluster.call("PATCH", f"{V1}/w/scale?fieldManager=m&force=true", applied, content_type=APPLY)
    assert (rejected.status, rejected.json["message"][:60]) == (
        500,
        "failed to convert new object (/; autoscaling/v1, Kind=Scale)"[:60],
    )


async def test_a_malformed_embedded_resource_that_only_one_version_declares_is_an_error(cluster: Cluster) -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plain, embedding = (
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"template": template}}}}
        for template in (anything, {**anything, "x-kubernetes-embedded-resource": True})
    )

    def declared(stored: str) -> list[Any]:
        return [
            version("v1", storage=stored == "v1", schema=plain),
            version("v2", storage=stored == "v2", schema=embedding),
        ]

    await cluster.define(definition("Widget", *declared("v1")))
    malformed = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}
    await cluster.create(V1, widget("v1", template=malformed))
    assert (await cluster.get(f"{V1}/w")).json["spec"]["template"] == malformed
    for target, status in ((f"{V2}/w", 500), (V2, 429)):
        read = await cluster.get(target)
        assert read.status == status
        assert "spec.template.metadata: Invalid value" in read.json["message"]

    patch = {"spec": {"versions": declared("v2")}}
    assert (await cluster.call("PATCH", CRD, patch, content_type=MERGE)).status == 200
    written = await cluster.call("POST", V1, widget("v1", "other", template=malformed))
    assert written.status == 500
    assert written.json["message"].startswith("spec.template.metadata: Invalid value")
    assert (await cluster.get(f"{V1}/other")).status == 404
