"""EvictionRequests, Evictions and the responders of pods (EvictionRequestAPI), also of kube-apiserver."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from support.forms import FORMS, serving
from support.https_client import MERGE, HttpsClient, Reply, causes
from support.service_accounts import ensure_service_account
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import format_time

FLAGS: Final = ("--feature-gates=EvictionRequestAPI=true", "--runtime-config=lifecycle.k8s.io/v1alpha1=true")
BASE: Final = "/apis/lifecycle.k8s.io/v1alpha1/namespaces/default"
TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
UID: Final = "123e4567-e89b-12d3-a456-426614174000"
TARGET: Final[Object] = {"pod": {"name": "web", "uid": UID}}
FIRST: Final = "example.com/drainer"
LAST: Final = "imperative-eviction.k8s.io/evictor"


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("data"), *FLAGS) as client:
        yield client


def create(client: HttpsClient, kind: str, name: str, spec: Object) -> Reply:
    body = {"apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return client.call("POST", f"{BASE}/{kind.lower()}s", body)


def row(client: HttpsClient, resource: str, name: str) -> list[Any]:
    listed = (
        client.with_headers(TABLE).call("GET", f"{BASE}/{resource}?fieldSelector=metadata.name={name}").body["rows"]
    )
    assert len(listed) == 1
    cells: list[Any] = listed[0]["cells"]
    return cells


def test_an_invalid_request_is_rejected_with_all_its_errors(client: HttpsClient) -> None:
    assert causes(create(client, "EvictionRequest", "empty", {})) == [
        'spec.target: Invalid value: "": must specify one of: `pod`',
        "spec.requester: Required value",
        "spec.intent: Required value",
    ]
    spec = {"target": {"pod": {"name": "web", "uid": "1"}}, "requester": "foo.k8s.io/x", "intent": "Go"}
    assert causes(create(client, "EvictionRequest", "invalid", spec)) == [
        'spec.target.pod.uid: Invalid value: "1": must be a lowercase UUID in 8-4-4-4-12 format',
        'spec.requester: Invalid value: "foo.k8s.io/x": domain names *.k8s.io, *.kubernetes.io are reserved',
        'spec.intent: Unsupported value: "Go": supported values: "Eviction", "Withdrawn"',
    ]


@pytest.mark.parametrize(
    ("kind", "others"), [("EvictionRequest", {"requester": "example.com/x", "intent": "Eviction"}), ("Eviction", {})]
)
def test_a_name_is_required_and_validated(client: HttpsClient, kind: str, others: Object) -> None:
    body = {"apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": kind, "spec": {"target": TARGET, **others}}
    path = f"{BASE}/{kind.lower()}s"
    required, invalid = causes(client.call("POST", path, body))
    assert required == "metadata.name: Required value: name or generateName is required"
    assert invalid.startswith('metadata.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist of')
    body["metadata"] = {"name": "x", "generateName": "a/b"}
    assert causes(client.call("POST", path, body)) == [
        "metadata.generateName: Invalid value: \"a/b\": may not contain '/'"
    ]


def test_only_the_intent_of_a_request_can_change(client: HttpsClient) -> None:
    spec = {"target": TARGET, "requester": "example.com/x", "intent": "Eviction"}
    assert create(client, "EvictionRequest", "changed", spec).body["metadata"]["generation"] == 1
    path = f"{BASE}/evictionrequests/changed"
    reply = client.call(
        "PATCH", path, {"spec": {"requester": "example.com/y", "target": {"pod": {"name": "b"}}}}, MERGE
    )
    assert causes(reply) == [
        "spec.target: Invalid value: null: field is immutable",
        "spec.requester: Invalid value: null: field is immutable",
    ]
    reply = client.call("PATCH", path, {"spec": {"intent": "Withdrawn"}}, MERGE)
    assert (reply.status, reply.body["metadata"]["generation"]) == (200, 2)
    assert row(client, "evictionrequests", "changed")[:6] == [
        "changed",
        "web",
        "Pod",
        "Pending",
        "example.com/x",
        "Withdrawn",
    ]


def test_the_observed_generation_does_not_decrease(client: HttpsClient) -> None:
    spec = {"target": TARGET, "requester": "example.com/x", "intent": "Eviction"}
    assert create(client, "EvictionRequest", "observed", spec).status == 201
    path = f"{BASE}/evictionrequests/observed/status"
    assert client.call("PATCH", path, {"status": {"observedGeneration": 2}}, MERGE).status == 200
    assert [
        causes(client.call("PATCH", path, {"status": {"observedGeneration": value}}, MERGE)) for value in (1, None)
    ] == [
        ["status.observedGeneration: Invalid value: 1: may not be decreased from 2"],
        ["status.observedGeneration: Invalid value: null: field cannot be cleared once set"],
    ]


def at(seconds: int) -> str:
    return format_time(datetime.now(UTC) + timedelta(seconds=seconds))


def states(first: str, last: str) -> list[Object]:
    return [
        {"name": FIRST, "priority": 5000, "state": first},
        {"name": LAST, "priority": 100, "state": last},
    ]


class Evicting:
    """An Eviction, with what its first responder reports.

    Args:
        client: a client of the server.
        name: the name of the Eviction.
    """

    def __init__(self, client: HttpsClient, name: str) -> None:
        self._client, self._name = client, name
        assert create(client, "Eviction", name, {"target": TARGET}).status == 201
        self.report: Object = {"name": FIRST}

    def set(self, **status: Any) -> Reply:
        path = f"{BASE}/evictions/{self._name}/status"
        return self._client.call("PATCH", path, {"status": status}, MERGE)

    def reports(self, last: Object | None = None, **fields: Any) -> list[Object]:
        return [{**self.report, **fields}, {"name": LAST, **(last or {})}]

    def begin(self) -> None:
        """Make the first responder Active."""
        self.report["startTime"] = at(0)
        assert self.set(targetResponders=states("Active", "Inactive"), responders=self.reports()).status == 200


def test_responders_are_tracked_before_they_act(client: HttpsClient) -> None:
    errors = causes(Evicting(client, "untracked").set(targetResponders=states("Active", "Inactive")))
    assert [error.partition(": Invalid value")[0] for error in errors] == [
        "status.targetResponders[0]",
        "status.targetResponders[1]",
        "status.responders",
    ]
    assert errors[0].endswith(f'"{FIRST}" has to be tracked in status.responders first')
    assert errors[2].endswith("null: must be the same length as status.targetResponders and contain the same keys")


def test_the_responder_with_the_highest_priority_acts_first(client: HttpsClient) -> None:
    eviction = Evicting(client, "order")
    assert causes(eviction.set(targetResponders=states("Inactive", "Active"), responders=eviction.reports())) == [
        'status.targetResponders[0].state: Invalid value: "Inactive": must be one of: Active, because this responder '
        "is next in line",
        'status.targetResponders[1].state: Invalid value: "Active": must be one of: Inactive, because the '
        "previously active has not finished processing",
        "status.responders[1].startTime: Required value: is required for an active responder",
    ]


def test_priorities_below_1000_are_reserved(client: HttpsClient) -> None:
    eviction = Evicting(client, "priorities")
    responders = states("Active", "Inactive")
    responders[0]["priority"], responders[1]["priority"] = 500, 10
    reports = eviction.reports(startTime=at(0))
    assert causes(eviction.set(targetResponders=responders, responders=reports)) == [
        "status.targetResponders[0].priority: Invalid value: 500: priorities 0-999 are reserved for responders with "
        "*.k8s.io suffix",
        "status.targetResponders[1].priority: Invalid value: 10: core k8s responder is expected to have priority: 100",
    ]


def test_an_active_responder_stays_active_until_it_has_completed(client: HttpsClient) -> None:
    eviction = Evicting(client, "completed")
    eviction.begin()
    assert row(client, "evictions", "completed")[4] == f"{FIRST} (1/2)"
    started = {"startTime": at(0)}
    assert causes(
        eviction.set(targetResponders=states("Completed", "Active"), responders=eviction.reports(started))
    ) == [
        "status.targetResponders[0].state: Forbidden: must stay Active because the responder is in progress and it "
        "should report status.responders.heartbeatTime or status.responders.completionTime",
        'status.targetResponders[0].state: Invalid value: "Completed": cannot become Completed because the responder '
        "didn't report status.responders.completionTime",
    ]
    eviction.report["completionTime"] = at(1)
    assert eviction.set(responders=eviction.reports()).status == 200
    assert causes(eviction.set(targetResponders=states("Completed", "Inactive"))) == [
        'status.targetResponders[1].state: Invalid value: "Inactive": must be one of: Active, because this responder '
        "is next in line"
    ]
    reply = eviction.set(targetResponders=states("Completed", "Active"), responders=eviction.reports(started))
    assert reply.status == 200
    assert row(client, "evictions", "completed")[4] == f"{LAST} (2/2)"
    assert causes(eviction.set(targetResponders=states("Active", "Inactive"))) == [
        'status.targetResponders[0].state: Invalid value: "Active": must be one of: Completed, because final state is '
        "immutable",
        'status.targetResponders[1].state: Invalid value: "Inactive": must be one of: Canceled, Completed, '
        "Interrupted, because this responder must reach a final state",
    ]


def test_reported_times_must_be_plausible(client: HttpsClient) -> None:
    eviction = Evicting(client, "times")
    eviction.begin()
    past = "2020-01-01T00:00:00Z"
    after = "must occur after status.responders[0].startTime"
    assert causes(
        eviction.set(responders=eviction.reports(heartbeatTime=past, expectedCompletionTime=past, completionTime=past))
    ) == [
        f'status.responders[0].heartbeatTime: Invalid value: "{past}": {after}',
        f'status.responders[0].expectedCompletionTime: Invalid value: "{past}": {after}',
        f'status.responders[0].completionTime: Invalid value: "{past}": {after}',
    ]
    future = at(3600)
    assert causes(eviction.set(responders=eviction.reports(heartbeatTime=future))) == [
        f'status.responders[0].heartbeatTime: Invalid value: "{future}": must be set to the present time'
    ]
    reports = [eviction.report, {"name": LAST, "completionTime": future}]
    [error] = causes(eviction.set(responders=reports))
    assert error.endswith("field is immutable")  # the last responder is not active


def test_a_final_condition_cannot_be_reverted(client: HttpsClient) -> None:
    eviction = Evicting(client, "final")
    condition = {
        "type": "Failed",
        "status": "True",
        "reason": "EvictionInvalid",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    assert eviction.set(conditions=[condition]).status == 200
    assert row(client, "evictions", "final")[3] == "Failed (EvictionInvalid)"
    [error] = causes(eviction.set(conditions=[{**condition, "reason": "Other"}]))
    assert error.endswith("Failed condition status cannot be reverted")
    for conditions, shown in (([], "[]"), (None, "null")):
        assert causes(eviction.set(conditions=conditions)) == [
            f"status.conditions: Invalid value: {shown}: Failed condition status cannot be reverted"
        ]


def test_the_responders_of_a_pod_are_validated(client: HttpsClient) -> None:
    ensure_service_account(client)

    def create_pod(name: str, **fields: Any) -> Reply:
        containers = [{"name": "c", "image": "i"}]
        spec = {"containers": containers, "automountServiceAccountToken": False, **fields}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        return client.call("POST", "/api/v1/namespaces/default/pods", body)

    responders = [{"name": "k8s.io/x", "priority": 5}, {"name": "b", "priority": -1}, {}]
    assert causes(create_pod("invalid", evictionResponders=responders)) == [
        'spec.evictionResponders[0].name: Invalid value: "k8s.io/x": domain names *.k8s.io, *.kubernetes.io are '
        "reserved",
        "spec.evictionResponders[0].priority: Invalid value: 5: priorities 0-999 are reserved for responders with "
        "*.k8s.io suffix",
        "spec.evictionResponders[1].name: Invalid value: \"b\": must include a prefix (e.g. 'example.com/key')",
        "spec.evictionResponders[1].priority: Invalid value: -1: must be greater than or equal to 0",
        "spec.evictionResponders[2].name: Required value",
        "spec.evictionResponders[2].priority: Required value",
    ]
    valid = [{"name": FIRST, "priority": 5000}]
    assert create_pod("valid", evictionResponders=valid).body["spec"]["evictionResponders"] == valid
