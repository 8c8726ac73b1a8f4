"""The life of a definition: names, conditions, updates, deletion."""

from __future__ import annotations

import gc

from integration.extensions.cluster import CRDS, MERGE, Cluster, definition, established, has_condition, running
from support.definitions import version
from support.waiting import eventually
from tetrapod.extensions.controllers import naming
from tetrapod.extensions.custom.storage import CurrentStorage, revision_now
from tetrapod.machinery.gvk import Object

WIDGETS = "/apis/example.com/v1/namespaces/ns/widgets"


def widget(name: str = "w", **more: object) -> dict[str, object]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, **more}


async def test_conditions_come_in_upstreams_order(cluster: Cluster) -> None:
    crd = await cluster.define(definition())
    reported = [(c["type"], c["status"], c["reason"]) for c in crd["status"]["conditions"]]
    assert reported == [("NamesAccepted", "True", "NoConflicts"), ("Established", "True", "InitialNamesAccepted")]
    assert crd["status"]["storedVersions"] == ["v1"]


async def test_a_name_belongs_to_the_first_definition_until_its_deletion(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", shortNames=["wd"]))
    await cluster.create(CRDS, definition("Gadget", shortNames=["wd"]))
    gadgets = f"{CRDS}/gadgets.example.com"
    crd = await cluster.until(gadgets, lambda crd: has_condition(crd, "NamesAccepted", "False"))
    assert crd["status"]["conditions"][0]["message"] == '"wd" is already in use'
    assert (await cluster.get("/apis/example.com/v1/gadgets")).status == 404
    await cluster.call("DELETE", f"{CRDS}/widgets.example.com")
    assert established(await cluster.until(gadgets, established))


async def test_many_definitions_of_one_group_are_all_established(cluster: Cluster) -> None:
    for i in range(30):
        await cluster.create(CRDS, definition(f"Thing{i}"))
    for i in range(30):
        await cluster.until(f"{CRDS}/thing{i}s.example.com", established)


async def test_a_changed_schema_applies_at_once_and_ends_watches(cluster: Cluster) -> None:
    await cluster.define(definition())
    await cluster.create(WIDGETS, widget(spec={"size": 1, "old": True}))
    strict = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}},
            }
        },
    }
    async with cluster.watch(f"{WIDGETS}?watch=1") as watching:
        assert (await watching.event())["type"] == "ADDED"
        patch = {"spec": {"versions": [version(schema=strict)]}}
        answer = await cluster.call("PATCH", f"{CRDS}/widgets.example.com", patch, content_type=MERGE)
        assert answer.status == 200
        await watching.ended.wait()
    # the stored condition has not changed
    assert (await cluster.get(f"{WIDGETS}/w")).json["spec"] == {"size": 1, "color": "red"}
    listed = (await cluster.get(WIDGETS)).json["items"]
    assert [item["spec"] for item in listed] == [{"size": 1, "color": "red"}]
    rejected = await cluster.call("POST", WIDGETS, widget("x", spec={"size": "big"}))
    assert (rejected.status, rejected.json["details"]["causes"][0]["field"]) == (422, "spec.size")


async def test_a_new_storage_version_serves_older_objects(cluster: Cluster) -> None:
    await cluster.define(definition("Widget", version("v1"), version("v2", storage=False)))
    await cluster.create(WIDGETS, widget(spec={"n": 1}))
    patch = {"spec": {"versions": [version("v1", storage=False), version("v2")]}}
    assert (await cluster.call("PATCH", f"{CRDS}/widgets.example.com", patch, content_type=MERGE)).status == 200
    for served in ("v1", "v2"):
        obj = (await cluster.get(f"/apis/example.com/{served}/namespaces/ns/widgets/w")).json
        assert (obj["apiVersion"], obj["spec"]) == (f"example.com/{served}", {"n": 1})
    crd = (await cluster.get(f"{CRDS}/widgets.example.com")).json
    assert crd["status"]["storedVersions"] == ["v1", "v2"]


async def test_objects_with_finalizers_delay_the_deletion_of_their_definition(cluster: Cluster) -> None:
    await cluster.define(definition())
    await cluster.create(WIDGETS, widget("free"))
    held = widget("held")
    held["metadata"] = {"name": "held", "finalizers": ["example.com/hold"]}
    await cluster.create(WIDGETS, held)
    deleted = (await cluster.call("DELETE", f"{CRDS}/widgets.example.com")).json
    assert deleted["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    crd = await cluster.until(
        f"{CRDS}/widgets.example.com",
        lambda crd: any(c["reason"] == "InstanceDeletionInProgress" for c in crd["status"]["conditions"]),
    )
    assert crd["metadata"]["deletionTimestamp"]
    rejected = await cluster.call("POST", WIDGETS, widget("late"))
    assert rejected.status == 403
    assert rejected.json["message"].endswith("create not allowed while custom resource definition is terminating")
    await cluster.call("PATCH", f"{WIDGETS}/held", {"metadata": {"finalizers": None}}, content_type=MERGE)
    await cluster.until(f"{CRDS}/widgets.example.com", lambda crd: crd.get("code") == 404)


async def test_a_group_is_removed_with_its_last_definition(cluster: Cluster) -> None:
    async def groups() -> int:
        gc.collect()  # the groups of servers that earlier tests stopped would otherwise leave the count at any time
        return sum(isinstance(each, naming._Group) for each in gc.get_objects())

    before = await groups()
    await cluster.define(definition("Widget"))
    assert await groups() == before + 1
    await cluster.call("DELETE", f"{CRDS}/widgets.example.com")
    await cluster.until(f"{CRDS}/widgets.example.com", lambda crd: crd.get("code") == 404)
    await eventually(groups, lambda count: count == before)


async def test_a_definition_that_was_never_established_is_deleted_at_once(cluster: Cluster) -> None:
    await cluster.define(definition("Widget"))
    await cluster.create(CRDS, definition("Widget", plural="others"))
    await cluster.until(f"{CRDS}/others.example.com", lambda crd: has_condition(crd, "NamesAccepted", "False"))
    await cluster.call("DELETE", f"{CRDS}/others.example.com")
    await cluster.until(f"{CRDS}/others.example.com", lambda crd: crd.get("code") == 404)


async def test_a_community_group_has_an_approval_condition(cluster: Cluster) -> None:
    crd = definition()
    crd["metadata"] = {
        "name": "widgets.sigs.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    }
    crd["spec"]["group"] = "sigs.k8s.io"
    await cluster.create(CRDS, crd)
    found = await cluster.until(
        f"{CRDS}/widgets.sigs.k8s.io", lambda crd: has_condition(crd, "KubernetesAPIApprovalPolicyConformant", "False")
    )
    reported = next(c for c in found["status"]["conditions"] if c["type"].startswith("Kubernetes"))
    assert (reported["reason"], reported["message"]) == ("UnapprovedAnnotation", 'not approved: "unapproved, a test"')


async def test_unchanged_objects_are_served_as_stored(cluster: Cluster) -> None:
    await cluster.define(definition())
    await cluster.create(WIDGETS, widget("old"))
    coloured = {"type": "object", "properties": {"color": {"type": "string", "default": "red"}}}
    await cluster.call(
        "PATCH", f"{CRDS}/widgets.example.com", {"spec": {"versions": [version(schema=coloured)]}}, content_type=MERGE
    )
    assert (await cluster.get(f"{WIDGETS}/old")).json["color"] == "red"
    crd = cluster.service.crds.get("widgets.example.com")
    assert crd is not None
    serving = await cluster.service.handler.serving(crd)
    storage = serving.store.storage
    assert isinstance(storage, CurrentStorage)
    assert storage.currency.current_from is None
    storage.currency.current_from = await revision_now(storage)
    await cluster.create(WIDGETS, widget("new"))
    old, new = await storage.get("ns/old"), await storage.get("ns/new")
    assert old is not None
    assert new is not None
    assert (old.peek()["color"], new.peek()["color"]) == ("red", "red")
    assert storage.current(new) is new


async def test_two_replicas_finalize_one_definition() -> None:
    async with running() as first, running(first) as second:
        await first.define(definition())
        for i in range(20):
            await second.create(WIDGETS, widget(f"w{i}"))
        await second.call("DELETE", f"{CRDS}/widgets.example.com")
        await first.until(f"{CRDS}/widgets.example.com", lambda crd: crd.get("code") == 404)
        await first.define(definition())
        assert (await second.get(WIDGETS)).json["items"] == []


async def test_an_invalid_ca_bundle_prevents_establishing_a_definition(cluster: Cluster) -> None:
    crd = definition()
    client = {"url": "https://example.com/c", "caBundle": "bm90IGEgY2VydGlmaWNhdGU="}
    crd["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
    }
    await cluster.create(CRDS, crd)

    def reported(found: Object) -> bool:
        return any(c["reason"] == "InvalidCABundle" for c in found["status"].get("conditions") or ())

    await cluster.until(f"{CRDS}/widgets.example.com", reported)
    patch = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": None}}}}}
    assert (await cluster.call("PATCH", f"{CRDS}/widgets.example.com", patch, content_type=MERGE)).status == 200
    await cluster.until(f"{CRDS}/widgets.example.com", established)


async def test_objects_stored_in_a_removed_version_are_unreadable_until_it_returns(cluster: Cluster) -> None:
    await cluster.define(definition())
    await cluster.create(WIDGETS, widget())
    crd, later = f"{CRDS}/widgets.example.com", WIDGETS.replace("/v1/", "/v2/")
    both = {"spec": {"versions": [version("v1", storage=False), version("v2")]}}
    for path, patch in (
        (crd, both),
        (f"{crd}/status", {"status": {"storedVersions": ["v2"]}}),
        (crd, {"spec": {"versions": [version("v2")]}}),
    ):
        assert (await cluster.call("PATCH", path, patch, content_type=MERGE)).status == 200
    why = "request to convert CR from an invalid group/version: example.com/v1"
    for method, path in (("GET", later), ("GET", f"{later}?watch=1")):
        answer = await cluster.call(method, path)
        assert answer.status == 429 and answer.json["message"].endswith(why)
    for method in ("GET", "DELETE"):
        answer = await cluster.call(method, f"{later}/w")
        assert answer.status == 500 and "Key: /example.com/widgets/ns/w, " in answer.json["message"]
    answer = await cluster.call("PATCH", f"{later}/w", {"spec": {}}, content_type=MERGE)
    assert answer.status == 500 and answer.json["message"].startswith("object not decodable revision=")
    answer = await cluster.call("POST", later, {**widget(), "apiVersion": "example.com/v2"})
    assert (answer.status, answer.json["reason"]) == (409, "AlreadyExists")
    assert (await cluster.call("PATCH", crd, both, content_type=MERGE)).status == 200
    assert (await cluster.get(f"{later}/w")).json["apiVersion"] == "example.com/v2"
