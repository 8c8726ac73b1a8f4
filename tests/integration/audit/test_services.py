"""Where the four run apart, a request has one event a stage, at the front, with one Audit-ID; it says what it would in one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.audit.conftest import Audited, config_map
from support.services import Services, running_services
from support.waiting import until


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[Services]:
    directory = tmp_path_factory.mktemp("four")
    audit = ("--audit-policy-file", str(files / "policy.yaml"), "--audit-log-path", str(directory / "audit.log"))
    with running_services(directory, auth=("--token-auth-file", str(files / "tokens.csv")), aggregator=audit) as services:
        yield services


@pytest.fixture(scope="module")
def front(four: Services) -> Audited:
    found = Audited(four.url, four.directory / "audit.log")
    labels = {"pod-security.kubernetes.io/audit": "restricted"}
    for name in ("requested", "unmanaged", "strict"):
        until(
            lambda name=name: found.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}).status in (201, 409)
        )
    return found


def test_the_front_tells_what_was_sent_and_answered_behind_it(front: Audited) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    answer = front.ask("POST", path, config_map(data={"k": "v"}))
    assert answer.status == 201 and answer.headers.get_all("audit-id") == [answer.audit_id]
    assert not [name for name in answer.headers if name.lower().startswith("x-remote")]
    received, complete = front.events(answer.audit_id)
    assert received["stage"] == "RequestReceived" and received["sourceIPs"] == complete["sourceIPs"] == ["127.0.0.1"]
    assert complete["requestObject"] == config_map(data={"k": "v"}) and complete["responseObject"] == answer.json
    assert complete["objectRef"] == {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"}


def test_refusals_and_annotations_come_from_behind(front: Audited) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    until(lambda: front.ask("GET", "/api/v1/namespaces/strict/serviceaccounts/default").status == 200)
    event = front.last("POST", "/api/v1/namespaces/strict/pods?dryRun=All", pod)
    assert event["annotations"]["pod-security.kubernetes.io/audit-violations"].startswith("would violate PodSecurity")
    missing = front.last("HEAD", "/api/v1/namespaces/default/configmaps/missing")
    assert missing["responseStatus"]["code"] == missing["responseObject"]["code"] == 405
    log = front.ask("GET", "/api/v1/namespaces/default/pods/missing/log")
    assert [event["responseStatus"]["reason"] for event in front.events(log.audit_id)[1:]] == ["NotFound", "NotFound"]


def test_who_really_asked_is_known_to_the_front_alone(front: Audited) -> None:
    event = front.last("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", impersonate_user="j", impersonate_group="system:masters")
    assert (event["user"]["username"], event["impersonatedUser"]["username"]) == ("admin", "j")
    assert event["responseObject"]["kind"] == "ClusterRoleList"


def test_nobody_but_the_front_may_ask_for_findings(front: Audited, four: Services) -> None:
    behind = Audited(f"https://127.0.0.1:{four.ports['core']}", front.log)
    for asked in (front, behind):
        answer = asked.ask("GET", "/api/v1/namespaces/default", x_remote_audit="Request")
        assert answer.status == 200 and not [name for name in answer.headers if name.lower().startswith("x-remote")]


def test_levels_hold_behind_the_front_too(front: Audited) -> None:
    requested = front.last("POST", "/api/v1/namespaces/requested/configmaps", config_map())
    assert requested["requestObject"] == config_map() and "responseObject" not in requested
    unmanaged = front.ask("POST", "/api/v1/namespaces/unmanaged/configmaps", config_map(data={"k": "v"}))
    (event,) = front.events(unmanaged.audit_id)
    assert "managedFields" in unmanaged.json["metadata"] and "managedFields" not in event["responseObject"]["metadata"]
    denied = front.last("POST", "/api/v1/namespaces/default/configmaps", config_map(), token="alice-token")
    assert denied["level"] == "Metadata" and denied["responseStatus"]["reason"] == "Forbidden" and "requestObject" not in denied
