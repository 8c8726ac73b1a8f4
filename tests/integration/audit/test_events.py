"""The content of audit events. The expectations are what a real kube-apiserver wrote for the same requests."""

from __future__ import annotations

import http.client
import re
import ssl
from typing import Any

import pytest

from integration.audit.conftest import Audited, config_map, legacy_token
from support.definitions import definition
from support.service_accounts import wait_for_service_account
from support.waiting import until

MAPS = "/api/v1/namespaces/default/configmaps"
ADMIN = {"username": "admin", "uid": "u-admin", "groups": ["system:masters", "system:authenticated"]}
ALLOWED = {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def stages(events: list[Any]) -> list[str]:
    return [event["stage"] for event in events]


def test_a_request_has_events_at_request_received_and_response_complete(audited: Audited) -> None:
    answer = audited.ask(
        "POST", f"{MAPS}?fieldManager=m", {"metadata": {"name": "whole", "uid": "given"}, "data": {"k": "<v>"}}
    )
    received, complete = audited.events(answer.audit_id)
    common = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": answer.headers["audit-id"],
        "requestURI": f"{MAPS}?fieldManager=m",
        "verb": "create",
        "user": ADMIN,
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "tests",
    }
    times = {name: received.pop(name) for name in ("requestReceivedTimestamp", "stageTimestamp")}
    assert times["requestReceivedTimestamp"] == times["stageTimestamp"] and MICRO.fullmatch(times["stageTimestamp"])
    reference = {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"}
    assert received == {**common, "stage": "RequestReceived", "objectRef": reference}
    assert complete.pop("requestReceivedTimestamp") == times["stageTimestamp"] < complete.pop("stageTimestamp")
    assert complete == {
        **common,
        "stage": "ResponseComplete",
        "objectRef": {**reference, "name": "whole", "uid": "given"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestObject": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": "whole", "uid": "given"},
            "data": {"k": "<v>"},
        },
        "responseObject": answer.json,
        "annotations": ALLOWED,
    }


def test_level_metadata_omits_objects(audited: Audited) -> None:
    event = audited.last("GET", MAPS, token="alice-token")
    status = event["responseStatus"]
    assert (status["code"], status["reason"], status["status"]) == (403, "Forbidden", "Failure")
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert not {"requestObject", "responseObject"} & event.keys()


def test_level_request_omits_responses(audited: Audited) -> None:
    event = audited.last("POST", "/api/v1/namespaces/requested/configmaps", config_map())
    assert event["requestObject"] == config_map() and "responseObject" not in event


def test_the_policy_can_omit_managed_fields_and_stages(audited: Audited) -> None:
    path = "/api/v1/namespaces/unmanaged/configmaps"
    answer = audited.ask("POST", path, config_map(data={"k": "v"}))
    assert "managedFields" in answer.json["metadata"]
    assert stages(audited.events(answer.audit_id)) == ["ResponseComplete"]
    got = audited.ask("GET", f"{path}/a").json
    replaced = audited.last("PUT", f"{path}/a", got)
    assert (
        "managedFields" not in replaced["requestObject"]["metadata"]
        and "managedFields" not in replaced["responseObject"]["metadata"]
    )
    assert replaced["objectRef"]["resourceVersion"] == got["metadata"]["resourceVersion"]
    listed = audited.last("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")["responseObject"]
    assert all("managedFields" not in row["object"]["metadata"] for row in listed["rows"])


@pytest.mark.parametrize(
    ("content_type", "body", "shown"),
    [
        ("application/merge-patch+json", '{ "data" : {"a": null},\n "x": 1.50 }', {"data": {"a": None}, "x": 1.5}),
        (
            "application/json-patch+json",
            '[{"op": "add", "path": "/data", "value": {}}]',
            [{"op": "add", "path": "/data", "value": {}}],
        ),
        (
            "application/apply-patch+yaml",
            "kind: ConfigMap\napiVersion: v1\nmetadata: {name: patched}\n",
            config_map("patched"),
        ),
        ("application/merge-patch+json", "nonsense", None),
    ],
)
def test_patches_are_shown_as_they_were_sent(audited: Audited, content_type: str, body: str, shown: Any) -> None:
    audited.ask("POST", MAPS, config_map("patched"))
    query = "?fieldManager=f&force=true" if "apply" in content_type else ""
    event = audited.last("PATCH", f"{MAPS}/patched{query}", body, content_type=content_type)
    assert event.get("requestObject") == shown


def test_options_of_a_deletion_are_a_request_object(audited: Audited) -> None:
    audited.ask("POST", MAPS, config_map("deleted"))
    event = audited.last("DELETE", f"{MAPS}/deleted", {"propagationPolicy": "Background"})
    assert event["requestObject"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/__internal",
        "propagationPolicy": "Background",
    }
    assert event["responseStatus"] == {
        "metadata": {},
        "status": "Success",
        "details": event["responseObject"]["details"],
        "code": 200,
    }


@pytest.mark.parametrize(
    "accept",
    [
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ],
)
def test_responses_are_logged_as_json_for_every_media_type(audited: Audited, accept: str) -> None:
    audited.ask("POST", MAPS, config_map("formed", data={"k": "v"}))
    shown = audited.last("GET", f"{MAPS}/formed", accept=accept)["responseObject"]
    plain = audited.ask("GET", f"{MAPS}/formed").json
    if "Partial" in accept:
        plain = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": plain["metadata"]}
    assert shown == plain


def test_a_streamed_list_is_logged_completely(audited: Audited) -> None:
    for i in range(4):
        audited.ask("POST", MAPS, config_map(f"large-{i}", data={"k": "x" * 100_000}))
    answer = audited.ask("GET", MAPS, accept_encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    listed = audited.events(answer.audit_id)[-1]["responseObject"]
    assert listed == audited.ask("GET", MAPS).json and listed["kind"] == "ConfigMapList"


def test_discovery_is_logged_and_other_documents_are_not(audited: Audited) -> None:
    definitions, crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("a.example.com", "Thing")
    assert audited.ask("POST", definitions, crd).status == 201
    until(lambda: audited.ask("GET", "/apis/a.example.com/v1").status == 200)
    assert audited.last("GET", "/apis/a.example.com/v1")["responseObject"]["kind"] == "APIResourceList"
    assert audited.last("GET", "/apis/apps")["responseObject"]["kind"] == "APIGroup"
    assert audited.last("GET", "/api/v1")["responseObject"]["kind"] == "APIResourceList"
    for path, code in (("/version", 200), ("/nothing", 404)):
        event = audited.last("GET", path)
        assert event["responseStatus"] == {"metadata": {}, "code": code} and "responseObject" not in event


def test_status_and_flag_pages_are_logged(audited: Audited) -> None:
    for page, kind in (("/statusz", "Statusz"), ("/flagz", "Flagz")):
        accept = "application/json;v=v1alpha1;g=config.k8s.io;as=" + kind
        event = audited.last("GET", page, accept=accept)
        assert (event["responseObject"]["kind"], event["annotations"]["k8s.io/deprecated"]) == (kind, "true")
        event = audited.last("GET", page, accept="application/json")
        assert event["responseObject"] == event["responseStatus"] | {"kind": "Status", "apiVersion": "v1"}
        assert "responseObject" not in audited.last("GET", page, accept="text/plain")


def test_a_watch_has_events_at_start_and_end(audited: Audited) -> None:
    answer = audited.ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1")
    events = audited.events(answer.audit_id)
    assert stages(events) == ["RequestReceived", "ResponseStarted", "ResponseComplete"]
    assert events[1]["responseStatus"] == events[2]["responseStatus"] == {"metadata": {}, "code": 200}
    assert events[1]["stageTimestamp"] < events[2]["stageTimestamp"]


def test_a_watch_of_a_deprecated_version_is_annotated_when_it_ends(audited: Audited) -> None:
    answer = audited.ask("GET", "/api/v1/namespaces/default/endpoints?watch=1&timeoutSeconds=1")
    _, started, complete = audited.events(answer.audit_id)
    assert started["annotations"] == ALLOWED
    assert complete["annotations"] == {**ALLOWED, "k8s.io/deprecated": "true"}


def test_a_watch_that_the_client_ends_is_complete(audited: Audited) -> None:
    connection = http.client.HTTPSConnection(audited.host, context=ssl._create_unverified_context(), timeout=30)
    connection.request("GET", f"{MAPS}?watch=1", headers={"authorization": "Bearer admin-token", "audit-id": "leaving"})
    connection.getresponse()
    assert stages(audited.events("leaving", "ResponseStarted")) == ["RequestReceived", "ResponseStarted"]
    connection.close()
    assert stages(audited.events("leaving"))[-1] == "ResponseComplete"


def test_an_unauthenticated_request_has_one_event(audited: Audited) -> None:
    for path, token, code in (("/api/v1/pods", "wrong", 401), ("/api/v1/pods?timeout=bad", "admin-token", 400)):
        answer = audited.ask("GET", path, token=token)
        assert answer.status == code
        (event,) = audited.events(answer.audit_id, "ResponseStarted")
        assert event["user"] == {} and event["responseStatus"]["code"] == code and "annotations" not in event


def test_impersonation_logs_both_users(audited: Audited) -> None:
    event = audited.last(
        "GET", MAPS, impersonate_user="jane", impersonate_group="system:masters", impersonate_extra_scopes="x"
    )
    assert event["user"] == ADMIN
    expected = {"username": "jane", "groups": ["system:masters", "system:authenticated"], "extra": {"scopes": ["x"]}}
    assert event["impersonatedUser"] == expected


def test_issued_tokens_and_deprecated_versions_are_annotated(audited: Audited) -> None:
    wait_for_service_account(audited.ask)
    event = audited.last("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}})
    assert re.fullmatch(r"JTI=[-0-9a-f]{36}", event["annotations"]["authentication.kubernetes.io/issued-credential-id"])
    assert audited.last("GET", "/api/v1/namespaces/default/endpoints")["annotations"]["k8s.io/deprecated"] == "true"
    expected = {**ALLOWED, "k8s.io/deprecated": "true", "k8s.io/removed-release": "1.39"}
    assert audited.last("GET", "/apis/resource.k8s.io/v1beta2/resourceslices")["annotations"] == expected


def test_a_legacy_token_is_annotated(audited: Audited) -> None:
    token, path = legacy_token(audited, "old"), "/api/v1/namespaces/default/serviceaccounts/default"
    used = {"authentication.k8s.io/legacy-token": "system:serviceaccount:default:default"}
    notes = audited.last("GET", "/api", token=token)["annotations"]
    assert notes.items() >= (used | {"authentication.k8s.io/legacy-token-manual-secret": "old"}).items()
    patch = {"content_type": "application/merge-patch+json"}
    assert audited.ask("PATCH", path, {"secrets": [{"name": "old"}]}, **patch).status == 200
    answer = audited.ask("GET", "/api", token=token)
    assert answer.headers["warning"].startswith('299 - "Use tokens from the TokenRequest API')
    notes = audited.events(answer.audit_id)[-1]["annotations"]
    assert notes.items() >= (used | {"authentication.k8s.io/legacy-token-autogenerated-secret": "old"}).items()
    review = audited.last("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
    assert not [key for key in review["annotations"] if key.startswith("authentication")]
    assert "annotations" not in review["responseObject"]["metadata"]


def test_pod_security_annotates_violations(audited: Audited) -> None:
    wait_for_service_account(audited.ask, "strict")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    event = audited.last("POST", "/api/v1/namespaces/strict/pods?dryRun=All", pod)
    notes = event["annotations"]
    assert notes["pod-security.kubernetes.io/enforce-policy"] == "privileged:latest"
    assert notes["pod-security.kubernetes.io/audit-violations"].startswith(
        'would violate PodSecurity "restricted:latest"'
    )
    assert event["requestObject"]["spec"]["restartPolicy"] == "Always"  # with defaults, as upstream's


def test_policies_annotate_events_and_failures_are_recorded(audited: Audited) -> None:
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.metadata.name != 'doubtful'", "message": "doubtful"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "'named ' + object.metadata.name"}],
    }
    binding = {"policyName": "noting", "validationActions": ["Audit"]}
    for resource, content in (("policies", spec), ("policybindings", binding)):
        kind = "ValidatingAdmissionPolicy" + ("Binding" if "bindings" in resource else "")
        obj = {
            "kind": kind,
            "apiVersion": "admissionregistration.k8s.io/v1",
            "metadata": {"name": "noting"},
            "spec": content,
        }
        assert audited.ask("POST", f"{group}/validatingadmission{resource}", obj).status == 201
    try:
        found: dict[str, Any] = {}

        def noted() -> bool:
            found.update(audited.last("POST", f"{MAPS}?dryRun=All", config_map("doubtful"))["annotations"])
            return "noting/k" in found

        until(noted)
        assert found["noting/k"] == "named doubtful"
        assert (
            '"message":"doubtful","policy":"noting","binding":"noting"'
            in found["validation.policy.admission.k8s.io/validation_failure"]
        )
    finally:
        for resource in ("policies", "policybindings"):
            audited.ask("DELETE", f"{group}/validatingadmission{resource}/noting")


def test_names_in_requests_are_not_truncated(audited: Audited) -> None:
    name = "n" * 200
    assert audited.ask("GET", "/version", audit_id=name).headers.get_all("audit-id") == [name]
    assert stages(audited.events(name)) == ["RequestReceived", "ResponseComplete"]


def test_unwanted_requests_are_not_logged_and_metrics_count_events(audited: Audited) -> None:
    ready = audited.ask("GET", "/readyz")
    text = audited.ask("GET", "/metrics").body.decode()
    audited.last("GET", "/version")
    assert all(event["auditID"] != ready.audit_id for event in audited.lines())
    assert all(event["user"].get("username") != "system:apiserver" for event in audited.lines())
    counted = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("apiserver_audit_")
    }
    assert counted["apiserver_audit_event_total"] > 20
    assert (
        counted['apiserver_audit_level_total{level="RequestResponse"}']
        > 10
        < counted['apiserver_audit_level_total{level="None"}']
    )


def test_a_rejection_without_an_acceptable_media_type_logs_only_the_code(audited: Audited) -> None:
    event = audited.last("GET", f"{MAPS}/nobody", accept="text/html")
    assert event["responseStatus"] == {"metadata": {}, "code": 406}
    assert "responseObject" not in event
