"""Audit with four separate services: the aggregator logs one event per stage and Audit-ID, with the same content as in
one process.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from integration.audit.conftest import Audited, config_map, legacy_token
from support.etcd import Etcd, running_etcd
from support.server import running
from support.service_accounts import wait_for_service_account
from support.services import Services, running_services
from support.waiting import until
from tetrapod.machinery.golang.durations import parse_duration


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[Services]:
    directory = tmp_path_factory.mktemp("four")
    audit = ("--audit-policy-file", str(files / "policy.yaml"), "--audit-log-path", str(directory / "audit.log"))
    with running_services(
        directory, auth=("--token-auth-file", str(files / "tokens.csv")), aggregator=audit
    ) as services:
        yield services


@pytest.fixture(scope="module")
def front(four: Services) -> Audited:
    found = Audited(four.url, four.directory / "audit.log")
    labels = {"pod-security.kubernetes.io/audit": "restricted"}
    for name in ("requested", "unmanaged", "strict"):
        namespace = {"metadata": {"name": name, "labels": labels}}
        until(partial(found.ask, "POST", "/api/v1/namespaces", namespace), lambda answer: answer.status in (201, 409))
    return found


def test_events_include_request_and_response_of_other_services(front: Audited) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    answer = front.ask("POST", path, config_map(data={"k": "v"}))
    assert answer.status == 201 and answer.headers.get_all("audit-id") == [answer.audit_id]
    assert not [name for name in answer.headers if name.lower().startswith("x-remote")]
    received, complete = front.events(answer.audit_id)
    assert received["stage"] == "RequestReceived" and received["sourceIPs"] == complete["sourceIPs"] == ["127.0.0.1"]
    assert complete["requestObject"] == config_map(data={"k": "v"}) and complete["responseObject"] == answer.json
    assert complete["objectRef"] == {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"}


def test_rejections_and_annotations_of_other_services_are_logged(front: Audited) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    wait_for_service_account(front.ask, "strict")
    event = front.last("POST", "/api/v1/namespaces/strict/pods?dryRun=All", pod)
    assert event["annotations"]["pod-security.kubernetes.io/audit-violations"].startswith("would violate PodSecurity")
    missing = front.last("HEAD", "/api/v1/namespaces/default/configmaps/missing")
    assert missing["responseStatus"]["code"] == missing["responseObject"]["code"] == 405
    log = front.ask("GET", "/api/v1/namespaces/default/pods/missing/log")
    assert [event["responseStatus"]["reason"] for event in front.events(log.audit_id)[1:]] == ["NotFound", "NotFound"]


@contextmanager
def paused(etcd: Etcd, seconds: float) -> Iterator[None]:
    """Suspend an etcd for some seconds, from now on."""
    etcd.pause()
    resume = threading.Timer(seconds, etcd.resume)
    resume.start()
    try:
        yield
    finally:
        resume.join()


def latencies(audited: Audited, etcd: Etcd, method: str = "POST", body: Any = None, **headers: str) -> dict[str, str]:
    """Return the annotations of a request that had to wait for the store for most of a second."""
    with paused(etcd, 0.9):
        event = audited.last(method, "/api/v1/namespaces/default/configmaps", body, **headers)
    prefix = "apiserver.latency.k8s.io/"
    return {key.removeprefix(prefix): value for key, value in event["annotations"].items() if key.startswith(prefix)}


def test_the_latency_of_the_store_is_annotated_in_both_forms(
    front: Audited, four: Services, files: Path, tmp_path: Path
) -> None:
    assert isinstance(four.etcd, Etcd)
    slow = config_map(name="slow")
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    found, lists = [latencies(front, four.etcd, body=slow)], [latencies(front, four.etcd, "GET", **table)]
    flags = [f"--audit-policy-file={files / 'policy.yaml'}", f"--audit-log-path={tmp_path / 'audit.log'}"]
    with running_etcd(tmp_path / "etcd") as etcd:
        tokens = f"--token-auth-file={files / 'tokens.csv'}"
        with running(tmp_path / "data", f"--etcd-servers={etcd.url}", tokens, "--watch-cache=false", *flags) as server:
            audited = Audited(server.url, tmp_path / "audit.log")
            found.append(latencies(audited, etcd, body=slow))
            lists.append(latencies(audited, etcd, "GET", **table))
            audited.ask("POST", "/api/v1/namespaces/default/configmaps", config_map("large", data={"k": "v" * 300_000}))
            lists.append(latencies(audited, etcd, "GET"))
    for layers in found:
        assert {"authentication", "authorization", "etcd", "total"} <= layers.keys()
        assert 0.4 < parse_duration(layers["etcd"]) <= parse_duration(layers["total"])
    assert all("serialize-response-object" in layers for layers in lists)
    assert ["decode-response-object" in layers for layers in lists] == [False, True, True]
    assert ["response-write" in layers for layers in lists] == [False, False, True]


def test_a_legacy_token_that_another_service_recognizes_is_annotated(front: Audited) -> None:
    token = legacy_token(front, "old")
    path, listed = "/api/v1/namespaces/default/serviceaccounts/default", {"secrets": [{"name": "old"}]}
    assert front.ask("PATCH", path, listed, content_type="application/merge-patch+json").status == 200
    # The auth service sees the patch a moment later, and answers about tokens are cached for ten seconds.
    answer = until(lambda: front.ask("GET", "/api", token=token), lambda answer: "warning" in answer.headers)
    assert answer.headers["warning"].startswith('299 - "Use tokens from the TokenRequest API')
    assert (
        front.events(answer.audit_id)[-1]["annotations"]["authentication.k8s.io/legacy-token-autogenerated-secret"]
        == "old"
    )


def test_only_the_aggregator_knows_the_impersonating_user(front: Audited) -> None:
    event = front.last(
        "GET",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        impersonate_user="j",
        impersonate_group="system:masters",
    )
    assert (event["user"]["username"], event["impersonatedUser"]["username"]) == ("admin", "j")
    assert event["responseObject"]["kind"] == "ClusterRoleList"


def test_only_the_aggregator_may_request_audit_data(front: Audited, four: Services) -> None:
    behind = Audited(f"https://127.0.0.1:{four.ports['core']}", front.log)
    for asked in (front, behind):
        answer = asked.ask("GET", "/api/v1/namespaces/default", x_remote_audit="Request")
        assert answer.status == 200 and not [name for name in answer.headers if name.lower().startswith("x-remote")]


def test_levels_apply_to_other_services(front: Audited) -> None:
    requested = front.last("POST", "/api/v1/namespaces/requested/configmaps", config_map())
    assert requested["requestObject"] == config_map() and "responseObject" not in requested
    unmanaged = front.ask("POST", "/api/v1/namespaces/unmanaged/configmaps", config_map(data={"k": "v"}))
    (event,) = front.events(unmanaged.audit_id)
    assert "managedFields" in unmanaged.json["metadata"] and "managedFields" not in event["responseObject"]["metadata"]
    denied = front.last("POST", "/api/v1/namespaces/default/configmaps", config_map(), token="alice-token")
    assert (
        denied["level"] == "Metadata"
        and denied["responseStatus"]["reason"] == "Forbidden"
        and "requestObject" not in denied
    )


@contextmanager
def upgrading_kubelet(certs: Path) -> Iterator[int]:
    """Run a server that switches protocols once and then answers in capital letters. Yield its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certs / "tls.crt", certs / "tls.key")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener, context.wrap_socket(listener.accept()[0], server_side=True) as connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(4096)
            connection.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                b"X-Remote-Audit-Findings: forged\r\n\r\n"
            )
            while data := connection.recv(4096):
                connection.sendall(data.upper())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    thread.join(10)


def test_annotations_of_a_connection_through_another_service_are_logged(front: Audited, four: Services) -> None:
    group = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}
    policy = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "exec"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "auditAnnotations": [{"key": "command", "valueExpression": "string(object.command[0])"}],
        },
    }
    binding = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "exec"},
        "spec": {"policyName": "exec", "validationActions": ["Deny"]},
    }
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    with upgrading_kubelet(four.certs / "core") as port:
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        assert front.ask("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": status}).status == 201
        wait_for_service_account(front.ask)
        assert front.ask("POST", pods, pod).status == 201
        for path, obj in (("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)):
            assert front.ask("POST", f"/apis/{group}/{path}", obj).status == 201
        # Without an upgrade the request is rejected by the subresource, after admission.
        event = until(
            lambda: front.last("POST", f"{pods}/p/exec?command=ls&stdout=true"),
            lambda event: "exec/command" in event["annotations"],
        )
        assert event["responseStatus"]["code"] == 400
        host, _, listening = front.host.partition(":")
        context = ssl._create_unverified_context()
        with context.wrap_socket(socket.create_connection((host, int(listening)), 30)) as client:
            client.sendall(
                f"POST {pods}/p/exec?command=id&stdout=true HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
                "Authorization: Bearer admin-token\r\nAudit-ID: upgraded\r\n"
                "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhello".encode()
            )
            received = b""
            while b"HELLO" not in received:
                received += client.recv(4096) or pytest.fail(f"closed after {received!r}")
            head = received.partition(b"\r\n\r\n")[0].lower()
            assert head.startswith(b"http/1.1 101 ") and b"x-remote" not in head
    event = front.events("upgraded")[-1]
    assert (event["responseStatus"]["code"], event["annotations"]["exec/command"]) == (101, "id")
