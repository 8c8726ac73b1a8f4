"""Admission plugins that are disabled by default, configured by a file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.failing_starts import failed_start
from support.https_client import MERGE, HttpsClient
from support.server import running
from support.service_accounts import wait_for_service_account
from support.waiting import until
from support.webhook import Answer, WebhookServer, allowed, webhook_server

PLUGINS = "EventRateLimit,ImagePolicyWebhook,NamespaceAutoProvision,PodNodeSelector,PodTolerationRestriction"
SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"


def review(asked: Any) -> Any:
    """Review images by their names."""
    images = [one["image"] for one in asked["spec"]["containers"]]
    if "broken" in images:
        return Answer(404, b"gone", {"content-type": "text/plain"})
    if "late" in images:
        return Answer(500, b"wait", {"content-type": "text/plain"})
    status: Any = {
        "allowed": not any(image.startswith("bad") for image in images),
        "auditAnnotations": {"seen": ",".join(images)},
    }
    if "bad-explained" in images:
        status["reason"] = "too old"
    return {**asked, "status": status}


@pytest.fixture(scope="module")
def images() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        server.on("/images", review)
        yield server


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, images: WebhookServer) -> Iterator[HttpsClient]:
    directory = tmp_path_factory.mktemp("configured")
    with running(directory, f"--enable-admission-plugins={PLUGINS}", *configured(directory, images)) as server:
        yield HttpsClient(server.kubeconfig)


def configured(directory: Path, images: WebhookServer) -> list[str]:
    """Return the flags."""
    kubeconfig = {
        "clusters": [
            {"name": "c", "cluster": {"server": f"{images.url}/images", "certificate-authority-data": images.ca_bundle}}
        ],
        "users": [{"name": "u", "user": {"token": "ours"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    (directory / "images.kubeconfig").write_text(json.dumps(kubeconfig))
    (directory / "callers.kubeconfig").write_text(
        json.dumps({"users": [{"name": "*", "user": {"username": "caller", "password": "p"}}]})
    )
    policy = {"kubeConfigFile": str(directory / "images.kubeconfig"), "allowTTL": 600, "denyTTL": -1, "retryBackoff": 1}
    (directory / "images.yaml").write_text(json.dumps({"imagePolicy": policy}))
    limits = [{"type": "Namespace", "qps": 1, "burst": 2}, {"type": "SourceAndObject", "qps": 1, "burst": 100}]
    gold = "gold.storageclass.storage.k8s.io/requests.storage"
    inline: dict[str, tuple[str, str, dict[str, Any]]] = {
        "EventRateLimit": ("eventratelimit.admission.k8s.io/v1alpha1", "Configuration", {"limits": limits}),
        "PodNodeSelector": (
            "",
            "",
            {"podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "zone=a", "listed": "zone=a,tier=x"}},
        ),
        "PodTolerationRestriction": (
            "podtolerationrestriction.admission.k8s.io/v1alpha1",
            "Configuration",
            {"default": [{"key": "d", "operator": "Exists"}]},
        ),
        "PodSecurity": (
            "pod-security.admission.config.k8s.io/v1",
            "PodSecurityConfiguration",
            {"defaults": {"enforce": "baseline"}, "exemptions": {"namespaces": ["exempt"]}},
        ),
        "ResourceQuota": (
            "apiserver.config.k8s.io/v1",
            "ResourceQuotaConfiguration",
            {"limitedResources": [{"resource": "persistentvolumeclaims", "matchContains": [gold]}]},
        ),
        "ValidatingAdmissionWebhook": (
            "apiserver.config.k8s.io/v1",
            "WebhookAdmissionConfiguration",
            {"kubeConfigFile": str(directory / "callers.kubeconfig")},
        ),
    }
    plugins: list[Any] = [{"name": "ImagePolicyWebhook", "path": "images.yaml"}]
    for name, (version, kind, said) in inline.items():
        plugins.append({"name": name, "configuration": ({"apiVersion": version, "kind": kind} if kind else {}) | said})
    file = directory / "admission.yaml"
    file.write_text(
        json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins})
    )
    return [f"--admission-control-config-file={file}"]


def pod(name: str, image: str = "good", **spec: Any) -> Any:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": image}], "automountServiceAccountToken": False, **spec},
    }


def namespace(client: HttpsClient, name: str, **metadata: Any) -> str:
    """Create a namespace and return the path of its pods, once pods can be created."""
    assert client.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, **metadata}}).status == 201
    wait_for_service_account(client.call, name)
    return f"/api/v1/namespaces/{name}/pods"


def test_a_missing_namespace_is_created_on_use(client: HttpsClient) -> None:
    maps = "/api/v1/namespaces/{}/configmaps"
    assert client.call("POST", maps.format("dry") + "?dryRun=All", {"metadata": {"name": "m"}}).status == 404
    assert client.call("GET", "/api/v1/namespaces/dry").status == 404
    assert client.call("POST", maps.format("made"), {"metadata": {"name": "m"}}).status == 201
    made = client.call("GET", "/api/v1/namespaces/made").body
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "made"}
    assert made["status"]["phase"] == "Active"
    rejected = client.call("POST", maps.format("Bad_"), {"metadata": {"name": "m"}})
    assert (rejected.status, rejected.body["reason"]) == (403, "Forbidden")
    assert rejected.message.startswith(
        'configmaps "m" is forbidden: Namespace "Bad_" is invalid: [metadata.name: Invalid value: "Bad_": '
    )


def test_more_events_than_a_namespace_may_have_are_rejected(client: HttpsClient) -> None:
    namespace(client, "busy")
    event = {"involvedObject": {"kind": "Pod", "namespace": "busy", "name": "p"}, "source": {"component": "c"}}
    replies = [
        client.call("POST", "/api/v1/namespaces/busy/events", {"metadata": {"name": f"e{i}"}, **event})
        for i in range(20)
    ]
    assert [reply.status for reply in replies[:2]] == [201, 201]
    rejected = next(reply for reply in replies if reply.status != 201)
    assert rejected.status == 429
    assert rejected.message == "Too many requests: limit reached on type Namespace for key busy"
    assert "details" not in rejected.body


def test_images_are_asked_about_and_answers_kept(client: HttpsClient, images: WebhookServer) -> None:
    pods = namespace(client, "imaged")
    images.seen.clear()
    for name in ("a", "b"):
        assert client.call("POST", pods, pod(name, "good")).status == 201
    (path, headers, asked) = images.seen[0]
    assert len(images.seen) == 1
    assert path == "POST /images?timeout=30s"
    assert headers["authorization"] == "Bearer ours"
    assert asked == {
        "kind": "ImageReview",
        "apiVersion": "imagepolicy.k8s.io/v1alpha1",
        "metadata": {},
        "spec": {"containers": [{"image": "good"}], "namespace": "imaged"},
        "status": {"allowed": False},
    }
    for image, expected in (
        ("bad", "one or more images rejected by webhook backend"),
        ("broken", "the server could not find the requested resource"),
    ):
        assert client.call("POST", pods, pod("no", image)).message == f'pods "no" is forbidden: {expected}'
    expected = 'pods "no" is forbidden: image policy webhook backend denied one or more images: too old'
    assert [client.call("POST", pods, pod("no", "bad-explained")).message for _ in range(2)] == [expected, expected]
    assert len(images.seen) == 5  # rejections are not cached in this configuration
    assert client.call("PATCH", f"{pods}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE).status == 200
    assert len(images.seen) == 5


def test_an_image_policy_webhook_is_called_again_after_an_error(client: HttpsClient, images: WebhookServer) -> None:
    pods = namespace(client, "retried")
    images.seen.clear()
    rejected = client.call("POST", pods, pod("p", "late"))
    assert (
        rejected.message
        == 'pods "p" is forbidden: an error on the server ("wait") has prevented the request from succeeding'
    )
    assert len(images.seen) == 5


def test_added_containers_are_asked_about_alone(client: HttpsClient, images: WebhookServer) -> None:
    pods = namespace(client, "added")
    assert client.call("POST", pods, pod("p", "good")).status == 201
    added = {"spec": {"ephemeralContainers": [{"name": "e", "image": "bad"}]}}
    rejected = client.call("PATCH", f"{pods}/p/ephemeralcontainers", added, "application/strategic-merge-patch+json")
    assert rejected.message == 'pods "p" is forbidden: one or more images rejected by webhook backend'
    assert images.seen[-1][2]["spec"] == {"containers": [{"image": "bad"}], "namespace": "added"}


def test_pods_select_the_nodes_of_their_namespace(client: HttpsClient) -> None:
    pods, own = namespace(client, "placed"), namespace(client, "own", annotations={SELECTOR: "env=dev"})
    assert client.call("POST", pods, pod("p", nodeSelector={"tier": "y"})).body["spec"]["nodeSelector"] == {
        "tier": "y",
        "zone": "a",
    }
    assert client.call("POST", own, pod("p")).body["spec"]["nodeSelector"] == {"env": "dev"}
    conflict = 'pods "q" is forbidden: pod node label selector conflicts with its namespace node label selector'
    assert client.call("POST", pods, pod("q", nodeSelector={"zone": "b"})).message == conflict
    listed = namespace(client, "listed")
    assert client.call("POST", listed, pod("p", nodeSelector={"tier": "x"})).status == 201
    rejected = client.call("POST", listed, pod("q", nodeSelector={"tier": "y"}))
    assert (
        rejected.message
        == 'pods "q" is forbidden: pod node label selector labels conflict with its namespace whitelist'
    )
    broken = client.call("POST", namespace(client, "odd", annotations={SELECTOR: "x"}), pod("p"))
    assert (broken.status, broken.message, broken.body.get("reason")) == (500, "invalid selector: [x]", None)


def test_pods_tolerate_what_their_namespace_does(client: HttpsClient) -> None:
    pods = namespace(client, "tolerant")
    tolerations = client.call("POST", pods, pod("p")).body["spec"]["tolerations"]
    assert {"key": "d", "operator": "Exists"} in tolerations
    requests: dict[str, Any] = {"containers": [{"name": "c", "image": "good", "resources": {"requests": {"cpu": "1"}}}]}
    burstable = client.call("POST", pods, pod("q", **requests)).body["spec"]["tolerations"]
    assert {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"} in burstable
    allowed = [
        {"key": key, "operator": "Exists"} for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]
    own = namespace(
        client, "intolerant", annotations={f"{TOLERATIONS}Whitelist": json.dumps(allowed), f"{DEFAULTS}": ""}
    )
    assert len(client.call("POST", own, pod("p")).body["spec"]["tolerations"]) == 2
    rejected = client.call("POST", own, pod("q", tolerations=[{"key": "x", "operator": "Exists"}]))
    conflict = (
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
    )
    assert (rejected.status, rejected.message) == (500, conflict)
    broken = client.call("POST", namespace(client, "odder", annotations={DEFAULTS: '[{"key": 7}]'}), pod("p"))
    assert broken.message == "json: cannot unmarshal number into Go struct field Toleration.key of type string"


def test_pod_security_holds_where_labels_ask_for_nothing(client: HttpsClient) -> None:
    rejected = client.call("POST", namespace(client, "secured"), pod("p", hostNetwork=True))
    assert (
        rejected.message
        == 'pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    )
    assert client.call("POST", namespace(client, "exempt"), pod("p", hostNetwork=True)).status == 201


def test_limited_resources_need_a_quota(client: HttpsClient) -> None:
    namespace(client, "counted")
    claims = "/api/v1/namespaces/counted/persistentvolumeclaims"
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gold",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    gold = {"metadata": {"name": "c"}, "spec": claim}
    expected = (
        'persistentvolumeclaims "c" is forbidden: insufficient quota to consume: '
        "gold.storageclass.storage.k8s.io/requests.storage"
    )
    assert client.call("POST", claims, gold).message == expected
    assert (
        client.call("POST", claims, {"metadata": {"name": "d"}, "spec": {**claim, "storageClassName": "tin"}}).status
        == 201
    )
    quotas, hard = (
        "/api/v1/namespaces/counted/resourcequotas",
        {"gold.storageclass.storage.k8s.io/requests.storage": "1Gi"},
    )
    assert client.call("POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}}).status == 201
    until(lambda: client.call("POST", claims, gold).status == 201)


def test_webhooks_are_called_as_their_hosts_want(client: HttpsClient, images: WebhookServer) -> None:
    images.on("/allow", allowed)
    namespace(client, "called")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    webhook = {
        "name": "called.example.com",
        "clientConfig": images.config("/allow"),
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "called"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert client.call("POST", hooks, {"metadata": {"name": "called"}, "webhooks": [webhook]}).status == 201
    images.seen.clear()

    def was_called() -> bool:
        assert (
            client.call("POST", "/api/v1/namespaces/called/configmaps", {"metadata": {"generateName": "m-"}}).status
            == 201
        )
        return bool(images.seen)

    until(was_called)
    assert images.seen[0][1]["authorization"] == f"Basic {base64.b64encode(b'caller:p').decode()}"


def test_an_unreadable_plugin_configuration_ends_the_start(tmp_path: Path) -> None:
    file = tmp_path / "admission.yaml"
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
        "plugins: [{name: PodSecurity, path: away}]\n"
    )
    failed = failed_start(tmp_path / "data", f"--admission-control-config-file={file}")
    away = tmp_path / "away"
    expected = (
        f"failed to apply admission: Couldn't open admission plugin configuration {away}: open "
        f"{away}: no such file or directory"
    )
    assert (failed.code, failed.error) == (1, f"Error: {expected}")
