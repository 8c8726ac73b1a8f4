"""Flags about internals of a server, tested by their effect on clients."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from urllib.parse import urlsplit

from support.failing_starts import start_error
from support.https_client import HttpsClient
from support.server import running
from support.service_accounts import wait_for_service_account
from support.waiting import until

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"


def test_supported_flags_have_their_effects(tmp_path: Path) -> None:
    flags = (
        "--profiling=false",
        "--event-ttl=2h",
        "--default-not-ready-toleration-seconds=10",
        "--default-unreachable-toleration-seconds=20",
        "--service-account-max-token-expiration=2h",
        "--kubernetes-service-node-port=30443",
        "--disabled-metrics=apiserver_request_total,process_max_fds,kubernetes_healthcheck",
    )
    with running(tmp_path, *flags) as server:
        client = HttpsClient(server.kubeconfig)
        for path in ("/debug/pprof", "/debug/pprof/goroutine", "/debug/flags/v"):
            assert client.call("GET", path).status == 404
        wait_for_service_account(client.call)
        metrics = client.call("GET", "/metrics").body + client.call("GET", "/metrics/slis").body
        shown = {line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE ")}
        assert {"apiserver_request_sli_duration_seconds", "process_open_fds", "kubernetes_healthchecks_total"} <= shown
        assert not {"apiserver_request_total", "process_max_fds", "kubernetes_healthcheck"} & shown
        assert "\ndisabled_metrics_total 3\n" in metrics
        service = client.until(
            lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/default/services/kubernetes"
        )
        assert service.body["spec"]["type"] == "NodePort"
        assert [port["nodePort"] for port in service.body["spec"]["ports"]] == [30443]
        pod = client.call("POST", "/api/v1/namespaces/default/pods", POD)
        assert pod.status == 201, pod.message
        assert [t["tolerationSeconds"] for t in pod.body["spec"]["tolerations"]] == [10, 20]
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 24 * 3600},
        }
        assert client.call("POST", TOKEN, asked).body["spec"]["expirationSeconds"] == 2 * 3600
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        assert client.call("POST", "/api/v1/namespaces/default/events", event).status == 201
    with sqlite3.connect(tmp_path / "tetrapod.db") as database:
        query = (
            "SELECT expires FROM leases JOIN current ON current.lease = leases.id WHERE key LIKE '%/events/default/e'"
        )
        ((expires,),) = database.execute(query).fetchall()
    database.close()
    assert 3600 < expires - time.time() <= 2 * 3600 + 300


def test_two_servers_share_a_port_if_both_permit_it(tmp_path: Path) -> None:
    with running(tmp_path / "a", "--permit-port-sharing") as one:
        port = urlsplit(one.url).port
        assert port is not None
        with running(tmp_path / "b", "--permit-port-sharing", port=port) as other:
            until(lambda: f"Tetrapod is ready: {one.url}" in other.log.read_text())
        text = start_error(tmp_path / "c", f"--secure-port={port}")
        assert text.endswith(f"listen tcp 127.0.0.1:{port}: bind: address already in use")


def test_a_token_is_good_for_an_hour_at_least(tmp_path: Path) -> None:
    text = "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"
    assert text in start_error(tmp_path, "--service-account-max-token-expiration=59m")


def test_node_port_of_the_kubernetes_service_must_be_in_the_range(tmp_path: Path) -> None:
    text = "Error: kubernetes service node port range 30000-32767 doesn't contain 80"
    assert start_error(tmp_path / "a", "--kubernetes-service-node-port=80") == text
    assert "must be between 0 and 65535" in start_error(tmp_path / "b", "--kubernetes-service-node-port=65536")
