"""The requests to admission webhooks and their order, and the effects of their responses."""

from __future__ import annotations

import base64
import re
from typing import Any

from integration.webhooks.conftest import CONFIG_MAPS, NS, RULE, Hooked, config_map
from support.definitions import definition, version
from support.https_client import APPLY, MERGE
from support.webhook import Answer, allowed, answered, json_patch

SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h"},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}},
}
SCALERS = f"namespaces/{NS}/horizontalpodautoscalers?dryRun=All"


def rule(group: str, version: str, *resources: str, **more: Any) -> Any:
    return {"apiGroups": [group], "apiVersions": [version], "operations": ["*"], "resources": list(resources), **more}


def test_a_review_contains_the_whole_request(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    with hooked.configured("Validating", hooked.declared("v", "/v")):
        assert hooked.create("seen", "?fieldManager=me&dryRun=All", labels={"x": "y"}).status == 201
    (target, headers, review), *_ = hooked.hook.seen
    assert (target, headers["user-agent"], headers["content-type"]) == (
        "POST /v?timeout=2s",
        "kube-apiserver-admission",
        "application/json",
    )
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    request = review["request"]
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    new = request.pop("object")
    assert (new["metadata"]["name"], new["metadata"]["labels"], "uid" in new["metadata"]) == ("seen", {"x": "y"}, True)
    assert request.pop("userInfo")["groups"] == ["system:masters", "system:authenticated"]
    assert re.fullmatch(r"[0-9a-f-]{36}", request.pop("uid"))
    assert request == {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "seen",
        "namespace": NS,
        "operation": "CREATE",
        "oldObject": None,
        "dryRun": True,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me", "dryRun": ["All"]},
    }


def test_every_kind_of_write_is_reviewed(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    with hooked.configured("Validating", hooked.declared("v", "/v")):
        hooked.create("w", "")
        hooked.client.call("PUT", f"{CONFIG_MAPS}/w", config_map("w", labels={"a": "b"}))
        hooked.client.call("PATCH", f"{CONFIG_MAPS}/w", {"data": {"k": "2"}}, MERGE)
        hooked.client.call("PATCH", f"{CONFIG_MAPS}/w?fieldManager=m", {**config_map("w"), "data": {"l": "m"}}, APPLY)
        hooked.client.call("DELETE", f"{CONFIG_MAPS}/w")
        hooked.create("x", "", labels={"all": "of-them"})
        hooked.client.call("DELETE", f"{CONFIG_MAPS}?labelSelector=all%3Dof-them")
    reviewed = [
        (r["operation"], r.get("name", ""), bool(r["object"]), bool(r["oldObject"]), r["options"]["kind"])
        for r in hooked.reviews()
    ]
    assert reviewed == [
        ("CREATE", "w", True, False, "CreateOptions"),
        ("UPDATE", "w", True, True, "UpdateOptions"),
        ("UPDATE", "w", True, True, "UpdateOptions"),
        ("UPDATE", "w", True, True, "UpdateOptions"),
        ("DELETE", "w", False, True, "DeleteOptions"),
        ("CREATE", "x", True, False, "CreateOptions"),
        ("DELETE", "", False, True, "DeleteOptions"),
    ]


def test_the_review_of_a_deletion_has_the_grace_period_and_the_uid_that_the_store_requires(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    pods = f"/api/v1/namespaces/{NS}/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    assert hooked.client.call("POST", pods, pod).status == 201
    namespace = {"metadata": {"name": "short-lived", "labels": {"reviewed": "yes"}}}
    uid = hooked.client.call("POST", "/api/v1/namespaces", namespace).body["metadata"]["uid"]
    rules = [rule("", "v1", "pods", "namespaces")]
    with hooked.configured("Validating", hooked.declared("v", "/v", rules=rules, namespaceSelector={})):
        for path in (f"{pods}/p?dryRun=All", f"{pods}?dryRun=All", f"{pods}/p?gracePeriodSeconds=-5&dryRun=All"):
            assert hooked.client.call("DELETE", path).status == 200
        assert hooked.client.call("DELETE", "/api/v1/namespaces/short-lived?dryRun=All").status == 200
    kept = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}
    assert [review["options"] for review in hooked.reviews()] == [
        {**kept, "gracePeriodSeconds": 30},
        kept,  # each deletion of a collection has options of its own
        {**kept, "gracePeriodSeconds": 1},
        {**kept, "preconditions": {"uid": uid}},
    ]


def test_validating_hooks_see_the_object_without_what_is_set_when_it_is_read_back(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {"metadata": {"name": "j"}, "spec": {"template": template}}
    resources = {"requests": {"storage": "1Gi"}}
    claim = {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}
    rules = [rule("", "v1", "persistentvolumeclaims"), rule("batch", "v1", "jobs")]
    with hooked.configured("Validating", hooked.declared("v", "/v", rules=rules)):
        bound = hooked.client.call("POST", f"/api/v1/namespaces/{NS}/persistentvolumeclaims?dryRun=All", claim)
        made = hooked.client.call("POST", f"/apis/batch/v1/namespaces/{NS}/jobs?dryRun=All", job)
    assert bound.body["status"] == {"phase": "Pending"}
    assert made.body["metadata"]["labels"]["job-name"] == "j"
    reviewed_claim, reviewed_job = hooked.reviews()
    assert reviewed_claim["object"]["status"] == {}
    assert "labels" not in reviewed_job["object"]["metadata"]


def test_the_review_has_the_options_that_the_client_sent(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    with hooked.configured("Validating", hooked.declared("v", "/v")):
        for query in ("?dryRun=All&fieldValidation=Warn", "?dryRun=All&fieldValidation=Strict", "?dryRun=All"):
            assert hooked.create(query=query).status == 201
    values = [review["options"].get("fieldValidation") for review in hooked.reviews()]
    assert values == ["Warn", "Strict", None]


def test_the_review_of_an_eviction_has_the_dry_run_of_the_request(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    pods = f"/api/v1/namespaces/{NS}/pods"
    pod = {"metadata": {"name": "evicted"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert hooked.client.call("POST", pods, pod).status == 201
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted"}}
    rules = [rule("", "v1", "pods/eviction")]
    with hooked.configured("Validating", hooked.declared("v", "/v", rules=rules)):
        bodies: list[Any] = [eviction | {"deleteOptions": {}}, eviction]
        for body in bodies:
            assert hooked.client.call("POST", f"{pods}/evicted/eviction?dryRun=All", body).status == 201
    reviewed, without = (review["object"] for review in hooked.reviews())
    assert reviewed["deleteOptions"] == {"dryRun": ["All"]}
    assert "deleteOptions" not in without


def test_a_hook_for_another_version_sees_the_object_in_that_version(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    with hooked.configured("Validating", hooked.declared("v", "/v", rules=[rule("autoscaling", "v1", "*/*")])):
        assert hooked.client.call("POST", f"/apis/autoscaling/v2/{SCALERS}", SCALER).status == 201
    (request,) = hooked.reviews()
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")
    assert request["object"]["apiVersion"] == "autoscaling/v1"
    assert request["object"]["spec"]["targetCPUUtilizationPercentage"] == 80


def test_a_change_in_another_version_is_converted_back(hooked: Hooked) -> None:
    hooked.hook.on(
        "/m",
        lambda r: allowed(r, **json_patch({"op": "add", "path": "/spec/targetCPUUtilizationPercentage", "value": 55})),
    )
    with hooked.configured("Mutating", hooked.declared("m", "/m", rules=[rule("autoscaling", "v1", "*/*")])):
        made = hooked.client.call("POST", f"/apis/autoscaling/v2/{SCALERS}", SCALER)
    assert made.body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 55


def test_matching_exactly_excludes_other_versions(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    with hooked.configured(
        "Validating", hooked.declared("v", "/v", rules=[rule("autoscaling", "v1", "*")], matchPolicy="Exact")
    ):
        assert hooked.client.call("POST", f"/apis/autoscaling/v2/{SCALERS}", SCALER).status == 201
    assert hooked.reviews() == []


def test_rules_for_one_group_of_events_match_both(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"namespace": NS, "kind": "X"},
    }
    with hooked.configured("Validating", hooked.declared("v", "/v", rules=[rule("events.k8s.io", "v1", "events")])):
        assert hooked.client.call("POST", f"/api/v1/namespaces/{NS}/events", event).status == 201
    (request,) = hooked.reviews()
    assert (request["kind"]["group"], request["object"]["regarding"]["kind"]) == ("events.k8s.io", "X")


def test_selectors_scope_and_exempt_kinds_avoid_calls(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    everything = [rule("*", "*", "*/*")]
    elsewhere = hooked.declared("elsewhere", "/v", namespaceSelector={"matchLabels": {"other": "namespace"}})
    labelled = hooked.declared("labelled", "/v", objectSelector={"matchLabels": {"wanted": "yes"}})
    cluster = hooked.declared("cluster", "/v", rules=[{**RULE, "scope": "Cluster"}])
    wide = hooked.declared(
        "wide", "/v", rules=everything, namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "nowhere"}}
    )
    with hooked.configured("Validating", elsewhere, labelled, cluster, wide):
        assert hooked.create().status == 201
        assert hooked.reviews() == []
        assert hooked.create(labels={"wanted": "yes"}).status == 201
        assert len(hooked.reviews()) == 1
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": NS}}
        assert hooked.client.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review).status == 201
        assert hooked.reviews() == []  # nor were those registered above


def test_an_object_selector_sees_the_old_object_too(hooked: Hooked) -> None:
    hooked.hook.on("/v", allowed)
    hooked.create("old", "", labels={"wanted": "yes"})
    with hooked.configured("Validating", hooked.declared("v", "/v", objectSelector={"matchLabels": {"wanted": "yes"}})):
        hooked.client.call("PUT", f"{CONFIG_MAPS}/old", config_map("old"))
    assert len(hooked.reviews()) == 1
    hooked.client.call("DELETE", f"{CONFIG_MAPS}/old")


def test_a_patch_is_applied_and_warnings_are_passed_on(hooked: Hooked) -> None:
    patch = json_patch({"op": "add", "path": "/data/x", "value": "y"})
    hooked.hook.on("/m", lambda r: allowed(r, warnings=["careful"], auditAnnotations={"a": "b"}, **patch))
    with hooked.configured("Mutating", hooked.declared("m", "/m")):
        made = hooked.create()
    assert (made.body["data"], made.warnings) == ({"k": "v", "x": "y"}, ['299 - "careful"'])


def test_managed_fields_are_those_of_the_user_and_invalid_ones_are_restored(hooked: Hooked) -> None:
    hooked.hook.on(
        "/m",
        lambda r: allowed(
            r, **json_patch({"op": "add", "path": "/metadata/managedFields", "value": [{"manager": "x"}]})
        ),
    )
    with hooked.configured("Mutating", hooked.declared("m", "/m")):
        made = hooked.create()
    assert [e["fieldsV1"] for e in made.body["metadata"]["managedFields"]] == [{"f:data": {".": {}, "f:k": {}}}]
    assert "was in an invalid state after admission" in made.warnings[0]


def _turns(hooked: Hooked, *hooks: tuple[str, str]) -> list[tuple[str, list[str]]]:
    """Register webhooks by name and reinvocationPolicy, which all add a key of their name, except "a".

    Return the calls with the keys that they saw.
    """
    asked: list[tuple[str, list[str]]] = []

    def respond(name: str) -> Any:
        def answer(review: Any) -> Any:
            asked.append((name, sorted(review["request"]["object"]["data"])))
            change = {} if name == "a" else json_patch({"op": "add", "path": f"/data/{name}", "value": "1"})
            return allowed(review, **change)

        return answer

    for name, _ in hooks:
        hooked.hook.on(f"/{name}", respond(name))
    with hooked.configured(
        "Mutating", *(hooked.declared(name, f"/{name}", reinvocationPolicy=policy) for name, policy in hooks)
    ):
        assert hooked.create().status == 201
    return asked


def test_webhooks_are_reinvoked_after_a_change_if_they_want_it(hooked: Hooked) -> None:
    assert _turns(hooked, ("a", "IfNeeded"), ("b", "Never")) == [("a", ["k"]), ("b", ["k"]), ("a", ["b", "k"])]
    assert _turns(hooked, ("a", "Never"), ("b", "Never")) == [("a", ["k"]), ("b", ["k"])]
    assert _turns(hooked, ("b", "IfNeeded"), ("a", "IfNeeded")) == [("b", ["k"]), ("a", ["b", "k"])]
    assert _turns(hooked, ("a", "IfNeeded"), ("b", "IfNeeded"), ("c", "IfNeeded")) == [
        ("a", ["k"]),
        ("b", ["k"]),
        ("c", ["b", "k"]),
        ("a", ["b", "c", "k"]),
        ("b", ["b", "c", "k"]),
    ]


def test_configurations_are_called_in_the_order_of_their_names(hooked: Hooked) -> None:
    asked: list[str] = []
    for name in ("one", "two"):

        def respond(review: Any, name: str = name) -> Any:
            asked.append(name)
            return allowed(review)

        hooked.hook.on(f"/{name}", respond)
    with (
        hooked.configured("Mutating", hooked.declared("x", "/two"), name="b-second"),
        hooked.configured("Mutating", hooked.declared("x", "/one"), name="a-first"),
    ):
        hooked.create()
    assert asked == ["one", "two"]


def test_the_first_of_two_rejections_is_returned(hooked: Hooked) -> None:
    import json

    def slow(review: Any) -> Answer:
        return Answer(200, json.dumps(answered(review, allowed=False, status={"message": "slow"})).encode(), after=0.5)

    hooked.hook.on("/slow", slow)
    hooked.hook.on("/quick", lambda r: answered(r, allowed=False, status={"message": "quick"}))
    with hooked.configured("Validating", hooked.declared("one", "/slow"), hooked.declared("two", "/quick")):
        assert hooked.create().message == 'admission webhook "two.example.com" denied the request: quick'
    assert len(hooked.reviews()) == 2


def test_a_dry_run_is_rejected_if_a_webhook_has_side_effects(hooked: Hooked) -> None:
    old = [{"op": "replace", "path": "/webhooks/0/sideEffects", "value": "Some"}]
    with hooked.configured("Validating", hooked.declared("v", "/v", sideEffects="None")):
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks"
        assert hooked.client.call("PATCH", path, old, "application/json-patch+json").status == 422
    hooked.hook.on("/v", allowed)
    with hooked.configured("Validating", hooked.declared("v", "/v", sideEffects="NoneOnDryRun")):
        assert hooked.create().status == 201
        assert hooked.reviews()[0]["dryRun"] is True


def test_v1beta1_responses_need_no_uid_and_kind(hooked: Hooked) -> None:
    patch = base64.b64encode(b'[{"op":"add","path":"/data/x","value":"y"}]').decode()
    hooked.hook.on("/m", lambda r: {"response": {"allowed": True, "patch": patch}})
    with hooked.configured("Mutating", hooked.declared("m", "/m", admissionReviewVersions=["v1beta1", "v1"])):
        assert hooked.create().body["data"]["x"] == "y"
    assert hooked.hook.seen[0][2]["apiVersion"] == "admission.k8s.io/v1beta1"


def test_a_webhook_certificate_can_be_its_own_trust_anchor(hooked: Hooked) -> None:
    """controller-runtime's envtest registers it as the CA bundle."""
    hooked.hook.on("/allow", allowed)
    declared = hooked.declared("own", "/allow")
    declared["clientConfig"]["caBundle"] = base64.b64encode(hooked.hook.certificate).decode()
    with hooked.configured("Validating", declared):
        assert hooked.create().status == 201
        assert [review["operation"] for review in hooked.reviews()] == ["CREATE"]


def test_an_equivalent_rule_matches_the_scale_of_another_version(hooked: Hooked) -> None:
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    versions = (
        version("v1", subresources={"scale": paths}),
        version("v2", storage=False, subresources={"scale": {**paths, "specReplicasPath": ".spec.count"}}),
    )
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert hooked.client.call("POST", definitions, definition("scaled.example.com", "Thing", *versions)).status == 201
    things = f"/apis/scaled.example.com/v1/namespaces/{NS}/things"
    thing = {"kind": "Thing", "apiVersion": "scaled.example.com/v1", "metadata": {"name": "a"}, "spec": {"count": 1}}
    hooked.client.until(lambda reply: reply.status == 201, "POST", things, thing)
    hooked.hook.on("/v", allowed)
    rules = [rule("scaled.example.com", "v1", "things/scale")]
    for policy, expected in (("Equivalent", ["v1"]), ("Exact", [])):
        with hooked.configured("Validating", hooked.declared("v", "/v", rules=rules, matchPolicy=policy)):
            path = f"{things.replace('v1', 'v2', 1)}/a/scale?dryRun=All"
            assert hooked.client.call("PATCH", path, {"spec": {"replicas": 2}}, MERGE).status == 200
        reviews = hooked.reviews()
        assert [review["resource"]["version"] for review in reviews] == expected
        assert all(review["kind"]["kind"] == "Scale" for review in reviews)
