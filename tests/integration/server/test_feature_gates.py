"""--feature-gates, tested by the effects on clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.failing_starts import start_error
from support.forms import feature_gates
from support.https_client import HttpsClient
from support.server import running
from support.service_accounts import wait_for_service_account

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WATCH_LIST = "/api/v1/namespaces?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
DISABLED = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"


def test_disabled_gates_have_their_effects(tmp_path: Path) -> None:
    off = ("APIResponseCompression", "StorageVersionHash", "WatchList")
    gates = ",".join(f"{name}=false" for name in off)
    with running(tmp_path, f"--feature-gates={gates}", "--feature-gates=KubeletSeparateDiskGC=false") as server:
        client = HttpsClient(server.kubeconfig)
        reply = client.call("GET", WATCH_LIST)
        assert reply.status == 422
        assert DISABLED in reply.message
        assert client.call("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1").status == 200
        resources = client.call("GET", "/api/v1").body["resources"]
        assert not any("storageVersionHash" in resource for resource in resources)
        connection = server.connect()
        connection.request("GET", "/metrics")
        metrics = connection.getresponse().read().decode()
        assert 'kubernetes_feature_enabled{name="WatchList",stage="BETA"} 0' in metrics
        assert 'kubernetes_feature_enabled{name="WatchListCompression",stage="BETA"} 1' in metrics
        assert 'kubernetes_feature_enabled{name="KubeletSeparateDiskGC",stage="BETA"} 0' in metrics
        large = {"metadata": {"name": "large"}, "data": {"text": "a" * 200_000}}
        assert client.call("POST", CONFIG_MAPS, large).status == 201
        connection.request("GET", f"{CONFIG_MAPS}/large", headers={"Accept-Encoding": "gzip"})
        response = connection.getresponse()
        assert response.getheader("Content-Encoding") is None
        assert len(response.read()) > 200_000
        connection.request("GET", "/flagz")
        assert f"feature-gates={gates},KubeletSeparateDiskGC=false" in connection.getresponse().read().decode()
        connection.close()


@pytest.mark.parametrize(("value", "encoding"), [("true", "gzip"), ("false", None)])
def test_watch_lists_are_compressed_only_with_their_gate(tmp_path: Path, value: str, encoding: str | None) -> None:
    with running(tmp_path, f"--feature-gates=WatchListCompression={value}") as server:
        connection = server.connect()
        connection.request("GET", f"{WATCH_LIST}&allowWatchBookmarks=true", headers={"Accept-Encoding": "gzip"})
        response = connection.getresponse()
        assert (response.status, response.getheader("Content-Encoding")) == (200, encoding)
        assert response.read()
        connection.close()


def test_pages_of_disabled_gates_are_not_served(tmp_path: Path) -> None:
    with running(tmp_path, "--feature-gates=ComponentFlagz=false,ComponentStatusz=false") as server:
        client = HttpsClient(server.kubeconfig)
        for path in ("/flagz", "/statusz"):
            assert client.call("GET", path)[:2] == (404, "404 page not found\n")
            assert path not in client.call("GET", "/").body["paths"]
        role = client.call("GET", f"{RBAC}/clusterroles/system:monitoring").body
        urls = {url for rule in role["rules"] for url in rule.get("nonResourceURLs", ())}
        assert "/metrics" in urls
        assert not {"/flagz", "/statusz"} & urls


@pytest.mark.parametrize(("value", "expected"), [("true", 403), ("false", 400)])
def test_a_reader_opens_a_stream_without_the_gate_that_authorizes_create(
    tmp_path: Path, value: str, expected: int
) -> None:
    with running(tmp_path, f"--feature-gates=AuthorizePodWebsocketUpgradeCreatePermission={value}") as server:
        client = HttpsClient(server.kubeconfig)
        bob = HttpsClient(server.kubeconfig, headers={"Impersonate-User": "bob"})
        rules = [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]}]
        role = {"metadata": {"name": "reader"}, "rules": rules}
        assert client.call("POST", f"{RBAC}/clusterroles", role).status == 201
        binding = {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
        }
        assert client.call("POST", f"{RBAC}/clusterrolebindings", binding).status == 201
        wait_for_service_account(client.call)
        assert client.call("POST", "/api/v1/namespaces/default/pods", POD).status == 201
        path = "/api/v1/namespaces/default/pods/p/exec?command=id&stdout=1"
        rejection = bob.until(lambda reply: reply.status == expected, "GET", path, timeout=60)
        assert ("does not have a host assigned" in rejection.message) == (value == "false")


def test_a_node_requests_any_audience_without_the_gate_that_restricts_them(tmp_path: Path) -> None:
    flags = (
        "--feature-gates=ServiceAccountNodeAudienceRestriction=false",
        "--enable-admission-plugins=NodeRestriction",
        "--authorization-mode=Node,RBAC",
    )
    with running(tmp_path, *flags) as server:
        client = HttpsClient(server.kubeconfig)
        wait_for_service_account(client.call)
        assert client.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}}).status == 201
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
        pod = {"metadata": {"name": "p"}, "spec": spec}
        meta = client.call("POST", "/api/v1/namespaces/default/pods", pod).body["metadata"]
        ref = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": meta["uid"]}
        body = {"spec": {"audiences": ["one", "two"], "boundObjectRef": ref}}
        identity = {"Impersonate-User": "system:node:n1", "Impersonate-Group": "system:nodes"}
        node = HttpsClient(server.kubeconfig, headers=identity)
        node.until(lambda reply: reply.status == 201, "POST", f"{ACCOUNTS}/default/token", body, timeout=60)


def test_validation_and_status_fields_follow_their_gates(tmp_path: Path) -> None:
    gates = "DeploymentReplicaSetTerminatingReplicas=false,HPAScaleToZero=false,StrictIPCIDRValidation=false"
    with running(tmp_path, f"--feature-gates={gates},StatefulSetRecreateStrategy=true") as server:
        client = HttpsClient(server.kubeconfig)
        labels = {"app": "a"}
        template = {"metadata": {"labels": labels}, "spec": POD["spec"]}
        workload_spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template}
        workload = {"metadata": {"name": "w"}, "spec": workload_spec}
        for resource in ("replicasets", "deployments"):
            path = f"/apis/apps/v1/namespaces/default/{resource}"
            stored = client.call("POST", path, workload).body
            stored["status"] = {"replicas": 1, "terminatingReplicas": 1}
            status = client.call("PUT", f"{path}/w/status", stored).body["status"]
            assert status["replicas"] == 1
            assert "terminatingReplicas" not in status
        metric = {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}
        scaler = {"minReplicas": 0, "maxReplicas": 1, "scaleTargetRef": target, "metrics": [metric]}
        path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
        reply = client.call("POST", path, {"metadata": {"name": "h"}, "spec": scaler})
        assert (reply.status, "must be greater than or equal to 1" in reply.message) == (422, True)
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}], "externalIPs": ["010.0.0.1"]}}
        assert client.call("POST", "/api/v1/namespaces/default/services", service).status == 201
        path = "/apis/apps/v1/namespaces/default/statefulsets"
        spec = {**workload_spec, "updateStrategy": {"type": "Recreate"}}
        assert client.call("POST", path, {"metadata": {"name": "w"}, "spec": spec}).status == 201
        spec["updateStrategy"] = {"type": "Other"}
        reply = client.call("POST", path, {"metadata": {"name": "x"}, "spec": spec})
        assert "must be 'RollingUpdate', 'OnDelete', or 'Recreate'" in reply.message


def test_a_service_is_created_and_deleted_with_a_cluster_ip_with_leading_zeros(tmp_path: Path) -> None:
    flags = ("--feature-gates=StrictIPCIDRValidation=false", "--service-cluster-ip-range=10.0.0.0/16")
    with running(tmp_path, *flags) as server:
        client = HttpsClient(server.kubeconfig)
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}], "clusterIP": "10.0.0.011"}}
        reply = client.call("POST", "/api/v1/namespaces/default/services", service)
        assert (reply.status, reply.body["spec"]["clusterIPs"]) == (201, ["10.0.0.011"])
        address = "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.11"
        assert client.call("GET", address).body["spec"]["parentRef"]["name"] == "s"
        other = {**service, "metadata": {"name": "other"}}
        reply = client.call("POST", "/api/v1/namespaces/default/services", other)
        assert (reply.status, "provided IP is already allocated" in reply.message) == (422, True)
        client.call("DELETE", "/api/v1/namespaces/default/services/s")
        client.until(lambda reply: reply.status == 404, "GET", address, timeout=60)


def test_requests_are_treated_as_their_gates_say(tmp_path: Path) -> None:
    names = (
        "ConstrainedImpersonation",
        "ExcludeAdmissionWebhookVirtualResources",
        "PodTopologyLabelsAdmission",
        "TokenRequestServiceAccountUIDValidation",
    )
    with running(tmp_path, feature_gates(names, enabled=False)) as server:
        client = HttpsClient(server.kubeconfig)
        rules = [
            {
                "apiGroups": ["authentication.k8s.io"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["tokenreviews"],
            }
        ]
        hook = {
            "name": "closed.example.com",
            "rules": rules,
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        hooks = {"metadata": {"name": "closed"}, "webhooks": [hook]}
        configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        reply = client.call("POST", configurations, hooks)
        assert (reply.status, reply.warnings) == (201, [])
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}}
        rejection = client.until(
            lambda reply: reply.status == 500, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review, timeout=60
        )
        assert "closed.example.com" in rejection.message
        node = {"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z"}}}
        assert client.call("POST", "/api/v1/nodes", node).status == 201
        wait_for_service_account(client.call)
        pod = {"metadata": {"name": "p"}, "spec": {**POD["spec"], "nodeName": "n1"}}
        assert "labels" not in client.call("POST", "/api/v1/namespaces/default/pods", pod).body["metadata"]
        body = {"metadata": {"uid": "other"}, "spec": {}}
        reply = client.call("POST", f"{ACCOUNTS}/default/token", body)
        assert (reply.status, reply.body["metadata"]["uid"]) == (201, "other")
        assert "TokenRequestServiceAccountUIDValidation is not enabled" in reply.warnings[0]
        metrics = client.call("GET", "/metrics").message
        assert 'filter_name="constrainedimpersonation"' not in metrics


def test_unknown_gates_prevent_the_start(tmp_path: Path) -> None:
    assert "unrecognized feature gate: Foo" in start_error(tmp_path, "--feature-gates=Foo=true")


def test_gates_without_effect_prevent_the_start(tmp_path: Path) -> None:
    text = "Tetrapod has only the default behaviour of HostnameOverride"
    assert text in start_error(tmp_path, "--emulated-version=1.36", "--feature-gates=HostnameOverride=false")


def test_all_alpha_and_all_beta_are_accepted_and_shown(tmp_path: Path) -> None:
    with running(tmp_path, "--feature-gates=AllAlpha=true,AllBeta=true") as server:
        client = HttpsClient(server.kubeconfig)
        metrics = client.call("GET", "/metrics").message
        assert 'kubernetes_feature_enabled{name="CBORServingAndStorage",stage="ALPHA"} 1' in metrics
        assert 'kubernetes_feature_enabled{name="AllBeta",stage="BETA"} 1' in metrics
        assert "Tetrapod has only the default behaviour of" not in server.log.read_text()
        assert client.call("GET", "/readyz").status == 200
