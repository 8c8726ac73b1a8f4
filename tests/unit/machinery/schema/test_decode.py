"""Tests of decoding built-in objects: the result is what Go would encode again."""

from __future__ import annotations

import copy
import json
from calendar import monthrange
from functools import reduce
from itertools import product
from operator import getitem
from pathlib import Path
from typing import Any

import orjson
import pytest

from tetrapod.machinery import types
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema import empty_values, unknown_fields
from tetrapod.machinery.schema.decode import DecodeError, decode
from tetrapod.machinery.schema_node import SchemaNode

FACTS = Path(__file__).parents[3] / "facts/schema"


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (FACTS / name).read_text().splitlines()]


def node_of(obj: Object) -> SchemaNode:
    return types.schema_for(GroupVersion.parse(obj["apiVersion"]).with_kind(obj["kind"]))


def decoded(kind: str, obj: Object, api_version: str = "v1") -> Object:
    decode(types.schema_for(GroupVersion.parse(api_version).with_kind(kind)), obj)
    return obj


@pytest.mark.parametrize("answer", lines("answers.jsonl"), ids=lambda a: f"{a['kind']}")
def test_recorded_answers_are_fixed_points(answer: Object) -> None:
    before = json.loads(json.dumps(answer))
    assert decode(node_of(answer), answer) == []
    assert answer == before


@pytest.mark.parametrize("case", lines("rejections.jsonl"), ids=lambda c: c["message"][:80])
def test_wrong_types_are_rejected_in_recorded_words(case: Object) -> None:
    sent, message = case["sent"], case["message"]
    if message.startswith("strict decoding error: "):
        paths = unknown_fields.find(node_of(sent), sent)
        assert ", ".join(f'unknown field "{path}"' for path in paths) == message.removeprefix("strict decoding error: ")
        return
    with pytest.raises(DecodeError) as rejection:
        decode(node_of(sent), sent)
    ours = (
        str(rejection.value).replace("2006-01-02T15:04:05.000000Z", "<time>").replace("2006-01-02T15:04:05Z", "<time>")
    )
    assert ours == message


@pytest.mark.parametrize(
    ("kind", "api_version", "sent", "words"),
    [
        (
            "Node",
            "v1",
            {"spec": {"taints": [{"effect": 1}]}},
            "number into Go struct field Taint.spec.taints.effect of type v1.TaintEffect",
        ),
        (
            "SubjectAccessReview",
            "authorization.k8s.io/v1",
            {"spec": {"extra": {"k": {}}}},
            "object into Go struct field SubjectAccessReviewSpec.spec.extra of type v1.ExtraValue",
        ),
        (
            "ValidatingWebhookConfiguration",
            "admissionregistration.k8s.io/v1",
            {"webhooks": [{"rules": [{"resources": [5]}]}]},
            "number into Go struct field RuleWithOperations.webhooks.rules.Rule.resources of type string",
        ),
    ],
)
def test_wrong_types_are_reported_by_the_names_that_go_has(
    kind: str, api_version: str, sent: Object, words: str
) -> None:
    with pytest.raises(DecodeError) as rejection:
        decoded(kind, sent, api_version)
    assert str(rejection.value) == f"json: cannot unmarshal {words}"


def test_the_first_of_several_errors_is_reported_unless_an_unmarshaler_fails() -> None:
    """Go's decoder records a wrong type and continues; an error of an unmarshaler ends it."""
    service: Object = {"spec": {"type": 5, "ports": [{"port": "x"}, {"port": 1}], "sessionAffinity": []}}
    with pytest.raises(DecodeError, match=r"number into Go struct field ServiceSpec\.spec\.type"):
        decoded("Service", service)
    service = {
        "spec": {"type": 5, "ports": [{"port": "x"}], "clusterIP": []},
        "metadata": {"creationTimestamp": "never"},
    }
    with pytest.raises(DecodeError, match='parsing time "never"'):
        decoded("Service", service)


def test_empty_values_that_a_rejection_distinguishes_are_kept() -> None:
    spec = decoded("PersistentVolume", {"spec": {"capacity": {}, "accessModes": [], "mountOptions": []}})["spec"]
    assert (spec["capacity"], spec["accessModes"]) == ({}, [])
    assert "mountOptions" not in spec
    with pytest.raises(DecodeError, match="cannot unmarshal array"):
        decoded("PersistentVolume", {"spec": {"capacity": []}})


def test_empty_values_with_omitempty_vanish_and_pointers_stay() -> None:
    spec = {
        "containers": [],
        "nodeName": "",
        "hostNetwork": False,
        "priority": 0,
        "hostUsers": False,
        "nodeSelector": {},
    }
    assert decoded("Pod", {"spec": spec})["spec"] == {"containers": [], "priority": 0, "hostUsers": False}


def test_nulls_are_absence_or_zero() -> None:
    sent = {"metadata": {"labels": {"a": None}, "name": None}, "data": None, "immutable": None}
    assert decoded("ConfigMap", sent) == {"metadata": {"labels": {"a": ""}}}
    assert decoded("ConfigMap", {"metadata": None}) == {"metadata": {}}


def test_values_without_omitempty_are_written() -> None:
    container = decoded("Pod", {"spec": {"containers": [{}, None]}})["spec"]["containers"]
    assert container == [{"name": "", "resources": {}}] * 2
    assert decoded("Pod", {})["status"] == {}


def test_schema_defaults_replace_absent_and_zero_values() -> None:
    ports = [{"port": 1, "protocol": ""}, {"port": 2}, {"port": 3, "protocol": "UDP"}]
    decoded_ports = decoded("Service", {"spec": {"ports": ports}})["spec"]["ports"]
    assert [port["protocol"] for port in decoded_ports] == ["TCP", "TCP", "UDP"]
    assert decoded("Pod", {"spec": {"containers": [{"livenessProbe": {"grpc": {"port": 1}}}]}})["spec"]["containers"][
        0
    ]["livenessProbe"] == {"grpc": {"port": 1, "service": ""}}


def forgotten(kind: str, obj: Object, api_version: str = "v1") -> Object:
    obj = decoded(kind, obj, api_version)
    empty_values.forget(types.schema_for(GroupVersion.parse(api_version).with_kind(kind)), obj)
    return obj


def test_empty_lists_without_omitempty_are_owned_then_null_except_where_json_is_stored() -> None:
    role = decoded("Role", {"rules": []}, "rbac.authorization.k8s.io/v1")
    assert role["rules"] == []
    assert forgotten("Role", role, "rbac.authorization.k8s.io/v1")["rules"] is None
    deployment = forgotten("Deployment", {"spec": {"template": {"spec": {"containers": []}}}}, "apps/v1")
    assert deployment["spec"]["template"]["spec"]["containers"] is None
    assert forgotten("ConfigMap", {"data": {"a": ""}})["data"] == {"a": ""}
    crd = forgotten("CustomResourceDefinition", {"status": {"storedVersions": []}}, "apiextensions.k8s.io/v1")
    assert crd["status"]["storedVersions"] == []
    assert crd["status"]["conditions"] is None


def test_an_empty_list_that_only_validation_distinguishes_is_not_stored() -> None:
    sent = decoded("StatefulSet", {"spec": {"volumeClaimTemplates": []}}, "apps/v1")
    assert sent["spec"]["volumeClaimTemplates"] == []
    left_out = empty_values.omit(types.schema_for(GroupVersion.parse("apps/v1").with_kind("StatefulSet")), sent)
    assert left_out == [(("spec", "volumeClaimTemplates"), [])]
    assert "volumeClaimTemplates" not in sent["spec"]


def test_empty_and_absent_rules_of_a_network_policy_are_distinguished_until_stored() -> None:
    version, kind = "networking.k8s.io/v1", "NetworkPolicy"
    sent = decoded(
        kind,
        {
            "spec": {
                "podSelector": {},
                "egress": [],
                "ingress": [{"from": []}, {"ports": [], "from": [{"podSelector": {}}]}],
            }
        },
        version,
    )
    assert sent["spec"]["egress"] == [] and sent["spec"]["ingress"][0] == {"from": []}
    node = types.schema_for(GroupVersion.parse(version).with_kind(kind))
    assert empty_values.hide(node, sent) == [(("spec", "egress"), [])]  # the rules are one atomic list
    empty_values.omit(node, sent)
    assert sent["spec"] == {"podSelector": {}, "ingress": [{}, {"from": [{"podSelector": {}}]}]}


@pytest.mark.parametrize(
    ("kind", "version", "place", "member"),
    [
        ("NetworkPolicy", "networking.k8s.io/v1", ("spec", "podSelector"), {"matchLabels": {}}),
        (
            "NetworkPolicy",
            "networking.k8s.io/v1",
            ("spec", "egress", 0, "to", 0, "namespaceSelector"),
            {"matchExpressions": []},
        ),
        ("Deployment", "apps/v1", ("spec", "template", "metadata"), {"labels": {}}),
    ],
)
def test_empty_and_absent_values_are_distinguished_for_some_types(
    kind: str, version: str, place: tuple[Any, ...], member: Any
) -> None:
    sent: Any = dict(member)
    for step in reversed(place):
        sent = [sent] if step == 0 else {step: sent}
    obj = decoded(kind, {"metadata": {"labels": {}}, **sent}, version)
    assert "labels" not in obj["metadata"]
    assert reduce(getitem, place, obj) == member
    empty_values.omit(types.schema_for(GroupVersion.parse(version).with_kind(kind)), obj)
    assert reduce(getitem, place, obj) == {}


def test_empty_values_of_nested_schemas_are_omitted() -> None:
    version, kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
    below: Any = [{"allOf": [{"required": []}]}]
    inner = {"type": "object", "enum": [], "default": {"enum": []}, "items": below, "additionalProperties": False}
    root = {"properties": {"a": inner, "enum": {}}, "not": {"properties": {}}, "definitions": {}}
    sent = decoded(kind, {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": root}}]}}, version)
    kept = sent["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert kept["definitions"] == {} and kept["properties"]["a"]["enum"] == []
    empty_values.omit(types.schema_for(GroupVersion.parse(version).with_kind(kind)), sent)
    left = {"type": "object", "default": {"enum": []}, "items": [{"allOf": [{}]}], "additionalProperties": False}
    assert kept == {"properties": {"a": left, "enum": {}}, "not": {}}


def test_empty_values_that_were_hidden_in_a_webhook_can_be_put_back() -> None:
    version, kind = "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"
    hooks = [
        {"clientConfig": {"caBundle": ""}, "rules": []},
        {"clientConfig": {"caBundle": "eA=="}, "matchConditions": []},
    ]
    sent = decoded(kind, {"webhooks": hooks}, version)
    node, before = types.schema_for(GroupVersion.parse(version).with_kind(kind)), copy.deepcopy(sent)
    hidden = empty_values.hide(node, sent)
    assert "caBundle" not in sent["webhooks"][0]["clientConfig"]
    assert "rules" not in sent["webhooks"][0]
    assert "matchConditions" not in sent["webhooks"][1]
    empty_values.put_back(sent, hidden)
    assert sent == before
    empty_values.omit(node, sent)
    assert sent["webhooks"][0]["clientConfig"] == {"caBundle": ""}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("1.5Gi", "1536Mi"),
        ("100u", "1m"),
        ("0.5", "500m"),
        (2, "2"),
        (0.25, "250m"),
        ("1e3", "1e3"),
        (2.0**63, "9223372036854776k"),
    ],
)
def test_quantities_are_canonical(sent: Any, kept: str) -> None:
    assert decoded("ResourceQuota", {"spec": {"hard": {"cpu": sent}}})["spec"]["hard"] == {"cpu": kept}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2024-02-29T23:00:00.5+02:00", "2024-02-29T21:00:00Z"),
        ("2024-01-31T00:00:00Z", "2024-01-31T00:00:00Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_times_are_utc_seconds(sent: str, kept: str | None) -> None:
    event = decoded("Event", {"firstTimestamp": sent})
    assert event["firstTimestamp"] == kept


@pytest.mark.parametrize("bad", ["2023-02-29T00:00:00Z", "2024-01-01", "", "2024-01-01 00:00:00Z", 5])
def test_bad_times_are_rejected(bad: Any) -> None:
    with pytest.raises(DecodeError):
        decoded("Event", {"firstTimestamp": bad})


def test_micro_times_keep_microseconds() -> None:
    lease = decoded("Lease", {"spec": {"renewTime": "2024-01-01T00:00:00.123456+00:00"}}, "coordination.k8s.io/v1")
    assert lease["spec"]["renewTime"] == "2024-01-01T00:00:00.123456Z"
    with pytest.raises(DecodeError, match="cannot parse"):
        decoded("Lease", {"spec": {"renewTime": "2024-01-01T00:00:00Z"}}, "coordination.k8s.io/v1")


@pytest.mark.parametrize("year", [2023, 2024])
def test_canonical_times_are_accepted_if_their_date_exists(year: int) -> None:
    for month, day in product(range(1, 13), range(32)):
        time = f"{year}-{month:02}-{day:02}T23:59:59Z"
        event = {"firstTimestamp": time, "eventTime": f"{time[:-1]}.000001Z"}
        if 1 <= day <= monthrange(year, month)[1]:
            assert decoded("Event", event) | event == decoded("Event", event)
        else:
            for field, text in event.items():
                with pytest.raises(DecodeError, match="day out of range"):
                    decoded("Event", {field: text})


def test_base64_is_canonical_or_rejected_at_a_byte() -> None:
    assert decoded("Secret", {"data": {"a": "aGk=\n", "b": None}})["data"] == {"a": "aGk=", "b": ""}
    for text, position in (("v", 0), ("a*==", 1), ("aGk", 0), ("aGVsbG8", 4)):
        with pytest.raises(DecodeError, match=f"illegal base64 data at input byte {position}$"):
            decoded("Secret", {"data": {"a": text}})


@pytest.mark.parametrize("bad", [1.5, 1.0, True, 3_000_000_000, [], {}])
def test_int_or_string_is_an_int32_or_a_string(bad: Any) -> None:
    with pytest.raises(DecodeError):
        decoded("PodDisruptionBudget", {"spec": {"minAvailable": bad}}, "policy/v1")


def test_int_or_string_keeps_both() -> None:
    spec = {"minAvailable": "50%", "maxUnavailable": 0}
    assert decoded("PodDisruptionBudget", {"spec": dict(spec)}, "policy/v1")["spec"] == spec


def test_unknown_fields_are_dropped_and_reported_in_document_order() -> None:
    pod: Object = {
        "zz": 1,
        "metadata": {"lables": {}},
        "spec": {"containers": [{"name": "a", "x": 1}], "b": {"c": 1}},
        "Kind": "x",
    }
    found = decode(types.schema_for(GroupVersionKind("", "v1", "Pod")), pod)
    assert found == ["zz", "metadata.lables", "spec.containers[0].x", "spec.b", "Kind"]
    assert pod["spec"] == {"containers": [{"name": "a", "resources": {}}]}


def test_schemas_of_crds_take_their_forms() -> None:
    schema: Object = {
        "properties": {"a": {"items": {"type": "x", "zz": 1}, "additionalProperties": False, "default": {"free": 1}}}
    }
    crd: Object = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    found = decode(types.schema_for(GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")), crd)
    assert found == []  # no error for the content of items, whose type has its own unmarshaler
    assert schema["properties"]["a"]["default"] == {"free": 1}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [(1.0, 1), (2.5, 2.5), (1e20, 1e20), (float(1 << 63), float(1 << 63)), (10**20, 1e20), (1 << 53, 1 << 53)],
)
def test_numbers_that_int64_does_not_hold_are_floats(sent: float, kept: float) -> None:
    schema = {"type": "number", "maximum": sent}
    spec = {"versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}
    crd = decoded("CustomResourceDefinition", {"spec": spec}, "apiextensions.k8s.io/v1")
    found = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["maximum"]
    assert (found, type(found)) == (kept, type(kept))
    assert json.loads(orjson.dumps(found)) == sent


def test_integers_that_a_float_does_not_hold_are_rounded_as_go_writes_them() -> None:
    schema = {"type": "number", "maximum": (1 << 63) - 1, "minimum": (1 << 53) + 1}
    spec = {"versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}
    crd = decoded("CustomResourceDefinition", {"spec": spec}, "apiextensions.k8s.io/v1")
    found = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert (found["maximum"], found["minimum"]) == (9223372036854776000, 1 << 53)
    again = decoded("CustomResourceDefinition", {"spec": copy.deepcopy(crd["spec"])}, "apiextensions.k8s.io/v1")
    assert again["spec"] == crd["spec"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2026-01-01T1:02:03.000004Z", "2026-01-01T01:02:03.000004Z"),
        ("2026-01-01T00:00:00,123456+01:30", "2025-12-31T22:30:00.123456Z"),
    ],
)
def test_times_are_read_as_leniently_as_go_does(sent: str, kept: str) -> None:
    lease = decoded("Lease", {"spec": {"renewTime": sent}}, "coordination.k8s.io/v1")
    assert lease["spec"]["renewTime"] == kept


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("2026-01-01T00:00:00.1234567Z", 'as "2006-01-02T15:04:05.000000Z07:00": cannot parse "7Z" as "Z07:00"'),
        ("2026-01-01T00:00:00.123456Z-x", ': extra text: "-x"'),
        ("2026-13-01T00:00:00.123456Z", ": month out of range"),
        ("2026-02-30T00:00:00.123456Z", ": day out of range"),
        ("2026-01-01T24:00:00.123456Z", ": hour out of range"),
        ("2026-01-01T00:00:60.123456Z", ": second out of range"),
        ("2026-01-01T00:00:00.123456+25:00", ": time zone offset hour out of range"),
        ("2026-01-01T00:00:00.123456+01:61", ": time zone offset minute out of range"),
        ("\u00e9", 'as "2006-01-02T15:04:05.000000Z07:00": cannot parse "\\xc3\\xa9" as "2006"'),
    ],
)
def test_malformed_times_have_the_errors_of_go(sent: str, words: str) -> None:
    with pytest.raises(DecodeError) as rejection:
        decoded("Lease", {"spec": {"renewTime": sent}}, "coordination.k8s.io/v1")
    assert (
        str(rejection.value).partition('" ')[2] == words
        if words.startswith("as")
        else str(rejection.value).endswith(f'"{words}')
    )


def test_bytes_may_be_a_list_of_numbers() -> None:
    assert decoded("Secret", {"data": {"a": [1, 2], "b": [None], "c": []}})["data"] == {
        "a": "AQI=",
        "b": "AA==",
        "c": "",
    }
    with pytest.raises(
        DecodeError, match=r"cannot unmarshal number 256 into Go struct field Secret\.data of type uint8"
    ):
        decoded("Secret", {"data": {"a": [256]}})


def test_a_mistake_that_ends_the_decoding_is_reported_even_behind_another_element_that_is_wrong() -> None:
    with pytest.raises(DecodeError, match="quantities must match"):
        decoded("LimitRange", {"spec": {"limits": [[1], {"max": {"cpu": {"a": 1}}}]}})
    with pytest.raises(DecodeError, match=r"LimitRangeSpec\.spec\.limits of type v1\.LimitRangeItem"):
        decoded("LimitRange", {"spec": {"limits": [[1], {"type": 1}]}})
