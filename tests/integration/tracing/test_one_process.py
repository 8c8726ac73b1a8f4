"""?trace=1 and exported traces of one process: complete, leaving nothing behind, and only for permitted users."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from integration.tracing.conftest import (
    CONFIG_MAPS,
    PARENT,
    TOKENS,
    TRACE,
    TRACEPARENT,
    ask,
    names,
    step,
    steps,
    traced,
    tracing_file,
)
from support.failing_starts import run_command
from support.https_client import HttpsClient
from support.otlp import Collector, ReceivedSpan
from support.server import Server, running
from support.webhook import WebhookServer, allowed, webhook_server

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
GROUP = "traced.example.com"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("traced")
    with running(
        directory / "data",
        "--token-auth-file",
        str(TOKENS),
        "--tracing-config-file",
        tracing_file(directory, collector),
    ) as found:
        yield found


@pytest.fixture(scope="module")
def other() -> Iterator[WebhookServer]:
    """Run a webhook and an external API server."""
    with webhook_server() as found:
        found.on("/validate", allowed)
        for path in (f"/apis/{GROUP}/v1", f"/apis/{GROUP}/v1/things"):
            found.on(path, lambda _: {"kind": "ThingList"})
        yield found


@pytest.fixture(scope="module")
def hooked(server: Server, other: WebhookServer) -> Iterator[HttpsClient]:
    client = HttpsClient(server.kubeconfig)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {
        "name": "seen.example.com",
        "clientConfig": other.config("/validate"),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": [rule],
    }
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.metadata.name != 'forbidden'", "message": "not that name"}],
    }
    made = [
        client.call(
            "POST", f"{ADMISSION}/validatingwebhookconfigurations", {"metadata": {"name": "traced"}, "webhooks": [hook]}
        ),
        client.call(
            "POST", f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": "named"}, "spec": policy}
        ),
        client.call(
            "POST",
            f"{ADMISSION}/validatingadmissionpolicybindings",
            {"metadata": {"name": "named"}, "spec": {"policyName": "named", "validationActions": ["Deny"]}},
        ),
    ]
    assert [reply.status for reply in made] == [201] * 3, made
    client.until(
        lambda reply: reply.status == 422, "POST", f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "forbidden"}}
    )
    client.until(lambda _: bool(other.seen), "POST", f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "asked"}})
    yield client
    client.call("DELETE", f"{ADMISSION}/validatingwebhookconfigurations/traced")
    client.call("DELETE", f"{ADMISSION}/validatingadmissionpolicies/named")


def test_a_write_shows_every_filter_plugin_webhook_policy_and_call_of_the_store(
    server: Server, hooked: HttpsClient
) -> None:
    report = traced(server.url, CONFIG_MAPS, {"metadata": {"name": "seen"}})
    assert (report["response"]["status"], report["request"]["user"]) == (201, "admin")
    filters = [span["name"] for span in steps(report["spans"]) if span.get("filter")]
    assert filters[:3] == ["audit-id", "requestinfo", "metrics"]
    assert filters[-4:] == ["impersonation", "priorityandfairness", "authorization", "compression"]
    create = step(report, "Create")
    assert create["attributes"]["audit-id"] == report["auditID"]
    below = [span["name"] for span in steps(create["spans"])]
    for name in (
        "registry create",
        "before create",
        "admission NamespaceLifecycle",
        "Create etcd3",
        "sqlite put",
        "SerializeObject",
    ):
        assert name in below, below
    validating = step(report, "admission ValidatingAdmissionWebhook")
    assert [span["name"] for span in steps(validating["spans"])] == ["Call validating webhook", "HTTP POST"]
    assert validating["spans"][0]["attributes"]["webhook"] == "seen.example.com"
    assert [span["name"] for span in step(report, "admission ValidatingAdmissionPolicy")["spans"]] == ["policy named"]
    assert ask(server.url, f"{CONFIG_MAPS}/seen")[0] == 200, "the request was done"


def test_steps_lie_within_the_steps_they_are_part_of(server: Server) -> None:
    checked: list[str] = []

    def check(span: dict[str, Any]) -> None:
        for child in span.get("spans", []):
            assert (
                span["start"] <= child["start"]
                and child["start"] + child["took"] <= span["start"] + span["took"] + 0.01
            )
            checked.append(child["name"])
            check(child)

    report = traced(server.url, CONFIG_MAPS)
    check({"start": 0.0, "took": report["took"], "spans": report["spans"]})
    assert {"authorization", "List", "cacher.GetList"} <= set(checked)


def test_a_rejection_is_traced_and_says_where_it_was_made(server: Server, hooked: HttpsClient) -> None:
    report = traced(server.url, f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "forbidden"}})
    assert report["response"]["status"] == 422
    assert [span["name"] for span in steps(report["spans"]) if "error" in span] == [
        "admission ValidatingAdmissionPolicy"
    ]


def test_a_watch_is_traced_until_it_has_begun(server: Server) -> None:
    report = traced(server.url, f"{CONFIG_MAPS}?watch=true")
    assert report["response"]["status"] == 200
    assert "cacher.Watch" in names(report)
    assert step(report, "writing the answer")["events"][0]["name"] == "broken off, having begun"


def test_a_long_list_is_written_to_its_end(server: Server) -> None:
    _, _, answer = ask(server.url, "/apis/rbac.authorization.k8s.io/v1/clusterroles")
    assert traced(server.url, "/apis/rbac.authorization.k8s.io/v1/clusterroles")["response"]["bytes"] == len(answer)


def test_a_trace_is_shown_as_text(server: Server) -> None:
    status, headers, answer = ask(server.url, f"{CONFIG_MAPS}?trace=text")
    lines = answer.decode().splitlines()
    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert lines[0] == f"GET {CONFIG_MAPS}?trace=text"
    assert lines[4].split() == ["start", "took", "own", "step", "(ms)"]
    assert headers["audit-id"] in lines[2]


def test_only_masters_may_look(server: Server) -> None:
    status, _, answer = ask(server.url, "/version?trace=1", token="alice-token")
    assert status == 403
    text = 'requests may be traced by members of system:masters only, and user "alice" is none of them'
    assert orjson.loads(answer)["message"] == text
    assert ask(server.url, "/version?trace=1", token="nobodys")[0] == 401


def test_other_values_of_the_parameter_start_no_trace(server: Server) -> None:
    for value in ("0", "", "yes", "11"):
        assert orjson.loads(ask(server.url, f"/version?trace={value}")[2])["major"] == "1"
    assert ask(server.url, "/version?trace=0", token="alice-token")[0] == 200


def test_an_external_server_is_one_span_and_does_not_get_the_parameter(server: Server, other: WebhookServer) -> None:
    client = HttpsClient(server.kubeconfig)
    spec: dict[str, Any] = {"type": "ExternalName", "externalName": "localhost"}
    client.call("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "external"}, "spec": spec})
    spec = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 10,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "default", "name": "external", "port": other.port},
    }
    client.call(
        "POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": f"v1.{GROUP}"}, "spec": spec}
    )
    client.until(lambda reply: reply.status == 200, "GET", f"/apis/{GROUP}/v1/things")
    report = traced(server.url, f"/apis/{GROUP}/v1/things?limit=1")
    hop = step(report, "HTTP GET")
    assert (hop["attributes"]["http.response.status_code"], hop.get("spans")) == (200, None)
    line, headers, _ = other.seen[-1]
    assert line == f"GET /apis/{GROUP}/v1/things?limit=1"
    assert headers["traceparent"].split("-")[1] == report["traceID"]
    assert "x-remote-trace" not in headers
    client.call("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}")


def test_the_command_shows_the_same_trace(server: Server, tmp_path: Path) -> None:
    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return run_command("trace", *args, "--kubeconfig", str(server.kubeconfig))

    file = tmp_path / "body.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: by-command}\n")
    made = run("post", f"{CONFIG_MAPS}?dryRun=All", "-f", str(file), "-o", "json")
    assert json.loads(made.stdout)["response"]["status"] == 201, made.stderr
    shown = run("GET", CONFIG_MAPS)
    assert shown.stdout.startswith(f"GET {CONFIG_MAPS}?trace=1\nanswered 200"), shown
    rejected = run("GET", "/version", "-H", "Impersonate-User: x", "-H", "Impersonate-Uid;")
    assert rejected.returncode in (0, 1)
    gone = run_command("trace", "GET", "/", "--kubeconfig", "/no/where")
    assert (gone.returncode, gone.stderr) == (1, "Error: stat /no/where: no such file or directory\n")


def by_name(spans: list[ReceivedSpan], audit_id: str) -> dict[str, ReceivedSpan]:
    server_span = next(s for s in spans if s.kind == 2 and s.attributes.get("audit-id") == audit_id)
    found, ids = {"": server_span}, {server_span.span_id}
    for _ in range(20):  # children may arrive before their parents
        for span in spans:
            if span.parent in ids:
                found[span.name] = span
                ids.add(span.span_id)
    return found


def exported(collector: Collector, audit_id: str) -> dict[str, ReceivedSpan]:
    spans = collector.wait_for(
        lambda spans: any(s.kind == 2 and s.attributes.get("audit-id") == audit_id for s in spans)
    )
    return by_name(spans, audit_id)


def test_a_master_continues_a_trace_and_names_and_attributes_are_upstreams(
    server: Server, collector: Collector, hooked: HttpsClient
) -> None:
    body = {"metadata": {"name": "exported"}}
    status, headers, answer = ask(
        server.url, f"{CONFIG_MAPS}?dryRun=All", body, traceparent=TRACEPARENT, user_agent="test"
    )
    assert status == 201
    spans = exported(collector, headers["audit-id"])
    root = spans[""]
    assert (root.name, root.trace_id, root.parent, root.links) == (
        "POST /api/v1/namespaces/{:namespace}/configmaps",
        TRACE,
        PARENT,
        [],
    )
    assert root.resource["service.name"] == "apiserver" and root.resource["service.instance.id"].startswith(
        "apiserver-"
    )
    port = int(server.url.rpartition(":")[2])
    assert root.attributes == {
        "server.address": "127.0.0.1",
        "server.port": port,
        "http.request.method": "POST",
        "url.scheme": "https",
        "network.peer.address": "127.0.0.1",
        "user_agent.original": "test",
        "client.address": "127.0.0.1",
        "url.path": CONFIG_MAPS,
        "network.protocol.version": "1.1",
        "http.target": f"{CONFIG_MAPS}?dryRun=All",
        "audit-id": headers["audit-id"],
        "http.request.body.size": len(orjson.dumps(body)),
        "http.response.body.size": len(answer),
        "http.response.status_code": 201,
    }
    assert root.scope == "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
    assert spans["Create"].scope == "k8s.io/component-base/tracing"
    assert spans["authorization"].scope == "k8s.op/apiserver/pkg/endpoints/filterlatency"
    assert spans["Create"].attributes["user-agent"] == "test" and spans["Create"].attributes["resource"] == "configmaps"
    hook = spans["Call validating webhook"].attributes
    assert (hook["configuration"], hook["webhook"], hook["operation"]) == ("traced", "seen.example.com", "CREATE")
    assert not [name for name in spans if name.startswith(("registry", "admission", "policy"))], "these are details"
    assert all(span.trace_id == TRACE and span.started <= span.ended for span in spans.values())


def test_the_webhook_receives_the_trace_context(server: Server, other: WebhookServer, hooked: HttpsClient) -> None:
    other.seen.clear()
    ask(server.url, f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "x"}}, traceparent=TRACEPARENT, tracestate="a=b")
    _, headers, _ = other.seen[-1]
    assert headers["traceparent"].startswith(f"00-{TRACE}-") and headers["traceparent"].endswith("-01")
    assert headers["tracestate"] == "a=b" and PARENT not in headers["traceparent"]


def test_others_do_not_decide_that_they_are_traced(server: Server, collector: Collector) -> None:
    _, mine, _ = ask(server.url, "/version", token="alice-token", traceparent=TRACEPARENT)
    _, unsampled, _ = ask(server.url, "/version", traceparent=TRACEPARENT[:-1] + "0")
    _, last, _ = ask(server.url, "/version", traceparent=TRACEPARENT)
    exported(collector, last["audit-id"])
    assert not {mine["audit-id"], unsampled["audit-id"]} & {s.attributes.get("audit-id") for s in collector.spans}


def test_a_watch_is_exported_when_it_ends(server: Server, collector: Collector) -> None:
    path = (
        f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
        "allowWatchBookmarks=true"
    )
    _, headers, _ = ask(server.url, path, traceparent=TRACEPARENT)
    spans = exported(collector, headers["audit-id"])
    assert "WatchList" in spans and spans[""].ended - spans[""].started > 900_000_000
