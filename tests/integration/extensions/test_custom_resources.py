"""Behaviour specific to custom resources: schemas, versions, subresources, discovery, paths."""

from __future__ import annotations

import pytest

from integration.extensions.cluster import APPLY, CRDS, MERGE, Cluster, definition, running
from support.definitions import version
from support.openapi import document_of
from tetrapod.generic.discovery.combined_source import JoinedDiscovery
from tetrapod.machinery.gvk import Object

WIDGETS = "/apis/example.com/v1/namespaces/ns/widgets"
SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer", "maximum": 9},
                "color": {"type": "string", "default": "blue"},
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}},
    },
}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def widget(name: str = "w", **more: object) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, **more}


async def test_unknown_fields_are_pruned_and_defaults_set(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA)))
    answer = await cluster.call("POST", f"{WIDGETS}?fieldValidation=Warn", widget(spec={"replicas": 1, "size": 2}))
    assert (answer.status, answer.json["spec"]) == (201, {"replicas": 1, "color": "blue"})
    assert answer.warnings == ['unknown field "spec.size"']


async def test_defaults_of_unknown_metadata_fields_are_pruned_from_embedded_resources(cluster: Cluster) -> None:
    fields = {"name": {"type": "string", "default": "n"}, "unknown": {"type": "string", "default": "u"}}
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {
            "apiVersion": {"type": "string", "default": "v1"},
            "kind": {"type": "string", "default": "Pod"},
            "metadata": {"type": "object", "properties": fields},
        },
    }
    schema = {"type": "object", "properties": {"embedded": embedded}}
    await cluster.define(definition("Widget", version(schema=schema)))
    created = await cluster.create(WIDGETS, widget(embedded={"metadata": {}}))
    assert created["embedded"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}}
    assert (await cluster.call("GET", f"{WIDGETS}/w")).json["embedded"] == created["embedded"]


async def test_status_is_separate_if_it_is_a_subresource(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA, subresources={"status": {}})))
    created = await cluster.create(WIDGETS, widget(spec={"replicas": 1}, status={"replicas": 5}))
    assert "status" not in created
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 2}, "status": {"replicas": 3}}
    answer = (await cluster.call("PATCH", f"{WIDGETS}/w/status", patch, content_type=MERGE)).json
    assert (answer["spec"]["replicas"], answer["status"], answer["metadata"].get("labels")) == (
        1,
        {"replicas": 3},
        None,
    )
    assert answer["metadata"]["generation"] == 1
    answer = (await cluster.call("PATCH", f"{WIDGETS}/w", patch, content_type=MERGE)).json
    assert (answer["spec"]["replicas"], answer["status"], answer["metadata"]["generation"]) == (2, {"replicas": 3}, 2)


async def test_scale_reads_and_writes_the_declared_paths(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA, subresources={"scale": SCALE})))
    await cluster.create(WIDGETS, widget(spec={"replicas": 2}, status={"replicas": 1, "selector": "a=b"}))
    scale = (await cluster.get(f"{WIDGETS}/w/scale")).json
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 2},
        {"replicas": 1, "selector": "a=b"},
    )
    answer = await cluster.call("PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 4}}, content_type=MERGE)
    assert answer.status == 200
    assert (await cluster.get(f"{WIDGETS}/w")).json["spec"]["replicas"] == 4


async def test_an_apply_without_changes_adds_no_defaults(cluster: Cluster) -> None:
    fields = {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    defaulted = {
        "spec": {
            "type": "object",
            "properties": {"size": {"type": "integer"}, "color": {"type": "string", "default": "blue"}},
        }
    }
    old, new = {"type": "object", "properties": defaulted}, {"type": "object", "properties": fields}
    await cluster.define(definition("Widget", version("v1", storage=False, schema=old), version("v2", schema=new)))
    await cluster.create(WIDGETS, widget(spec={"size": 1}))  # stored without the color
    for config, generation in ((widget(), 1), (widget(spec={"size": 1}), 1), (widget(spec={"size": 2}), 2)):
        answer = await cluster.call("PATCH", f"{WIDGETS}/w?fieldManager=m&force=true", config, content_type=APPLY)
        assert (answer.status, answer.json["metadata"]["generation"]) == (200, generation)
    merged = await cluster.call("PATCH", f"{WIDGETS}/w", {}, content_type=MERGE)
    assert merged.json["metadata"]["generation"] == 3  # any other write makes a new object, with defaults


async def test_managers_of_a_removed_version_are_kept_and_applies_fail(cluster: Cluster) -> None:
    both = version("v1", storage=False, schema=SCHEMA), version("v2", schema=SCHEMA)
    await cluster.define(definition("Widget", *both))
    await cluster.call("PATCH", f"{WIDGETS}/w?fieldManager=m", widget(spec={"replicas": 1}), content_type=APPLY)
    await cluster.call("PATCH", f"{CRDS}/widgets.example.com", {"spec": {"versions": [both[1]]}}, content_type=MERGE)
    await cluster.until("/apis/example.com", lambda group: len(group["versions"]) == 1)
    path = f"{WIDGETS.replace('v1', 'v2')}/w?fieldManager=m"
    applied = await cluster.call("PATCH", path, {**widget(), "apiVersion": "example.com/v2"}, content_type=APPLY)
    assert applied.json["message"] == "request to convert CR to an invalid group/version: example.com/v1"
    merged = await cluster.call("PATCH", path, {"spec": {"color": "red"}}, content_type=MERGE)
    owners = [(entry["manager"], entry["apiVersion"]) for entry in merged.json["metadata"]["managedFields"]]
    assert (merged.json["spec"]["color"], owners) == ("red", [("m", "example.com/v1")])


async def test_versions_differ_by_their_schemas(cluster: Cluster) -> None:
    old = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    await cluster.define(definition("Widget", version("v1", storage=False, schema=old), version("v2", schema=SCHEMA)))
    created = await cluster.create(WIDGETS, widget(spec={"size": 3}))
    assert created["spec"] == {}  # v2 is stored, and v1 has none of its defaults
    v2 = (await cluster.get("/apis/example.com/v2/namespaces/ns/widgets/w")).json
    assert (v2["apiVersion"], v2["spec"]) == ("example.com/v2", {"color": "blue"})


async def test_an_update_that_keeps_an_invalid_value_is_accepted(cluster: Cluster) -> None:
    await cluster.define(definition())
    await cluster.create(WIDGETS, widget(spec={"replicas": 50}))
    patch = {"spec": {"versions": [version(schema=SCHEMA)]}}
    assert (await cluster.call("PATCH", f"{CRDS}/widgets.example.com", patch, content_type=MERGE)).status == 200
    label = {"metadata": {"labels": {"a": "b"}}}
    assert (await cluster.call("PATCH", f"{WIDGETS}/w", label, content_type=MERGE)).status == 200
    answer = await cluster.call("PATCH", f"{WIDGETS}/w", {"spec": {"replicas": 51}}, content_type=MERGE)
    assert answer.status == 422


async def test_server_side_apply_creates_and_tracks(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA)))
    answer = await cluster.call(
        "PATCH", f"{WIDGETS}/w?fieldManager=m", widget(spec={"replicas": 1}), content_type=APPLY
    )
    assert answer.status == 201
    [entry] = answer.json["metadata"]["managedFields"]
    assert (entry["manager"], entry["fieldsV1"]) == ("m", {"f:spec": {"f:replicas": {}}})
    conflict = await cluster.call(
        "PATCH", f"{WIDGETS}/w?fieldManager=n", widget(spec={"replicas": 2}), content_type=APPLY
    )
    assert conflict.status == 409


async def test_discovery_lists_served_resources(cluster: Cluster) -> None:
    crd = definition(
        "Widget",
        version(schema=SCHEMA, subresources={"status": {}, "scale": SCALE}),
        shortNames=["wd"],
        categories=["all"],
    )
    await cluster.define(crd)
    group = (await cluster.get("/apis/example.com")).json
    assert group["preferredVersion"] == {"groupVersion": "example.com/v1", "version": "v1"}
    resources = (await cluster.get("/apis/example.com/v1")).json["resources"]
    assert [r["name"] for r in resources] == ["widgets", "widgets/status", "widgets/scale"]
    assert (resources[0]["shortNames"], resources[0]["categories"], resources[2]["group"]) == (
        ["wd"],
        ["all"],
        "autoscaling",
    )
    assert resources[0]["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert (await cluster.get("/apis/example.com/v7")).body == b"404 page not found\n"
    [aggregated] = cluster.service.discovery.aggregated(False)
    assert aggregated["versions"][0]["resources"][0]["resource"] == "widgets"


async def test_openapi_documents_follow_the_definition(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA)))
    index = await cluster.service.openapi.index()
    assert list(index) == ["apis/example.com/v1"]
    document = await document_of(cluster.service.openapi, "apis/example.com/v1")
    assert document is not None
    assert (
        document["components"]["schemas"]["com.example.v1.Widget"]["properties"]["spec"]["properties"]["color"][
            "default"
        ]
        == "blue"
    )
    assert await document_of(cluster.service.openapi, "apis/example.com/v2") is None
    patch = {"spec": {"versions": [version()]}}
    await cluster.call("PATCH", f"{CRDS}/widgets.example.com", patch, content_type=MERGE)
    assert await cluster.service.openapi.index() != index


@pytest.mark.parametrize(
    "path",
    [
        "/apis/example.com/v1/nothing",
        "/apis/example.com/v2/widgets",
        "/apis/example.com/v1/widgets/w",  # a namespaced object without a namespace
        "/apis/nobody.example.com/v1/widgets",
        "/apis/nobody.example.com",
        "/apis/example.com/v1/widget",
    ],
)
async def test_undefined_resources_are_a_plain_404(cluster: Cluster, path: str) -> None:
    await cluster.define(definition())
    answer = await cluster.get(path)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


async def test_a_subresource_that_is_not_declared_is_not_found(cluster: Cluster) -> None:
    await cluster.define(definition())
    await cluster.create(WIDGETS, widget())
    answer = await cluster.get(f"{WIDGETS}/w/status")
    assert (answer.status, answer.json["message"]) == (404, 'widgets.example.com "w" not found')


async def test_printer_columns_are_those_of_the_version(cluster: Cluster) -> None:
    column = {"name": "Color", "type": "string", "jsonPath": ".spec.color"}
    crd = definition(
        "Widget",
        version("v1", schema=SCHEMA, additionalPrinterColumns=[column]),
        version("v2", storage=False, schema=SCHEMA),
    )
    await cluster.define(crd)
    await cluster.create(WIDGETS, widget(spec={}))
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    first = (await cluster.get(WIDGETS, accept=table)).json
    assert ([c["name"] for c in first["columnDefinitions"]], first["rows"][0]["cells"]) == (
        ["Name", "Color"],
        ["w", "blue"],
    )
    second = (await cluster.get("/apis/example.com/v2/namespaces/ns/widgets", accept=table)).json
    assert [c["name"] for c in second["columnDefinitions"]] == ["Name", "Age"]


async def test_selectable_fields_can_be_selected(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA, selectableFields=[{"jsonPath": ".spec.color"}])))
    for name, color in (("a", "red"), ("b", "green")):
        await cluster.create(WIDGETS, widget(name, spec={"color": color}))
    found = (await cluster.get(f"{WIDGETS}?fieldSelector=spec.color%3Dred")).json["items"]
    assert [item["metadata"]["name"] for item in found] == ["a"]
    assert (await cluster.get(f"{WIDGETS}?fieldSelector=spec.size%3D1")).status == 400


async def test_a_version_without_its_webhook_is_an_error_and_the_stored_version_works(cluster: Cluster) -> None:
    crd = definition("Widget", version("v1"), version("v2", storage=False))
    webhook = {"clientConfig": {"url": "https://127.0.0.1:9/convert"}, "conversionReviewVersions": ["v1"]}
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    await cluster.define(crd)
    await cluster.create(WIDGETS, widget())
    other = "/apis/example.com/v2/namespaces/ns/widgets/w"
    answer = await cluster.get(other)
    assert (answer.status, answer.json["reason"]) == (500, "InternalError")
    assert "conversion webhook for example.com/v1, Kind=Widget failed" in answer.json["message"]
    assert (await cluster.call("DELETE", other)).status == 500
    assert (await cluster.get(f"{WIDGETS}/w")).status == 200


async def test_validation_rules_are_stored_although_not_evaluated(cluster: Cluster) -> None:
    ruled = {**SCHEMA, "x-kubernetes-validations": [{"rule": "self.spec.replicas < 5", "message": "too many"}]}
    crd = await cluster.define(definition("Widget", version(schema=ruled)))
    assert (
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"][0]["message"] == "too many"
    )
    rejected = await cluster.call("POST", WIDGETS, widget(spec={"replicas": "x"}))
    assert "some validation rules were not checked because the object was invalid" in rejected.json["message"]


async def test_a_second_replica_serves_an_established_definition_at_once() -> None:
    async with running() as first, running(first) as second:
        await first.define(definition())
        assert (await second.call("POST", WIDGETS, widget())).status == 201
        assert (await first.get(f"{WIDGETS}/w")).status == 200


async def test_an_unused_definition_has_no_cache_and_no_schema(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA)))
    await cluster.get("/apis/example.com/v1")
    assert cluster.service.handler._servings == {}


async def test_managed_fields_are_dropped_from_oversized_objects_except_on_apply(cluster: Cluster) -> None:
    await cluster.define(definition())
    large = widget(spec={f"{'field':_<20}{i}": "value" * 4 for i in range(24_000)})
    assert "managedFields" not in (await cluster.create(WIDGETS, large))["metadata"]
    again = {**large, "metadata": {"name": "applied"}}
    rejected = await cluster.call("PATCH", f"{WIDGETS}/applied?fieldManager=m", again, content_type=APPLY)
    assert (rejected.status, rejected.json["message"]) == (500, "etcdserver: request is too large")


async def test_finalizers_without_a_domain_are_warned_about(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version(schema=SCHEMA)))
    obj = widget()
    obj["metadata"]["finalizers"] = ["hold", "example.com", "example.com/hold", "orphan"]
    answer = await cluster.call("POST", WIDGETS, obj)
    ending = "to avoid accidental conflicts with other finalizer writers"
    assert answer.warnings == [
        f'metadata.finalizers: "example.com": prefer a domain-qualified finalizer name including a path (/) {ending}',
        f'metadata.finalizers: "hold": prefer a domain-qualified finalizer name {ending}',
    ]
    obj["metadata"]["finalizers"] += ["more"]
    updated = await cluster.call("PATCH", f"{WIDGETS}/w", {"metadata": obj["metadata"]}, content_type=MERGE)
    assert updated.warnings == [f'metadata.finalizers: "more": prefer a domain-qualified finalizer name {ending}']


async def test_a_builtin_group_version_keeps_its_resources_in_discovery(cluster: Cluster) -> None:
    crd = definition("Bar", version("v1"), version("vfake", storage=False))
    crd["spec"]["group"] = "apiextensions.k8s.io"
    annotations = {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/78458"}
    crd["metadata"] = {"name": "bars.apiextensions.k8s.io", "annotations": annotations}
    await cluster.define(crd)
    joined = JoinedDiscovery([cluster.server.source, cluster.service.discovery])
    [group] = [item for item in joined.aggregated(False) if item["metadata"]["name"] == "apiextensions.k8s.io"]
    resources = {v["version"]: [r["resource"] for r in v["resources"]] for v in group["versions"]}
    assert resources == {"v1": ["customresourcedefinitions"], "vfake": ["bars"]}
