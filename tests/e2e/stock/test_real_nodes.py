"""A cluster of two real nodes, as `make cluster` starts it: pods run, and reach each other across the nodes."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster import network
from cluster.commands import run
from cluster.control_groups import hierarchies
from cluster.images import AGNHOST
from cluster.leftovers import KERNEL
from cluster.processes import Processes
from cluster.settings import FORMS, HOST_INTERFACE, NODES, Paths
from support.cluster import cluster_command
from support.kubectl import Kubectl
from support.server import free_port
from support.waiting import until

pytestmark = [pytest.mark.stock, pytest.mark.timeout(900)]

WEB = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 4
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {{matchLabels: {{app: web}}}}
      containers:
        - name: web
          image: {AGNHOST}
          args: [netexec, --http-port=80]
          readinessProbe: {{httpGet: {{port: 80, path: /hostname}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec: {{selector: {{app: web}}, ports: [{{port: 80}}]}}
"""
WEB_URL = "http://web.default.svc.cluster.local/hostname"


@dataclass(frozen=True)
class Cluster:
    kubectl: Kubectl
    output: str
    """The output of the command that started it."""

    def pods(self) -> dict[str, list[str]]:
        """Return the names of the pods of the Deployment by their node."""
        found: dict[str, list[str]] = {}
        for pod in self.kubectl.json("get", "pods", "--selector=app=web")["items"]:
            found.setdefault(pod["spec"]["nodeName"], []).append(pod["metadata"]["name"])
        return found

    def one_pod_of_each_node(self) -> list[str]:
        return [pods[0] for pods in self.pods().values()]

    def fetch(self, pod: str, url: str) -> subprocess.CompletedProcess[str]:
        """Send a GET from a pod, and return what it printed, also if it failed."""
        return self.kubectl.run("exec", pod, "--", "curl", "--silent", "--show-error", "--max-time", "5", url)


def machine() -> dict[str, Any]:
    """Return the state of the machine that a cluster changes while it runs."""

    def output(*argv: str) -> list[str]:
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()

    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return {
        "mounts": sorted(line.split()[4] for line in mounts),
        "interfaces": sorted(Path("/sys/class/net").iterdir()),
        "routes": output("ip", "route", "show", "table", "all"),
        "rules": [line for line in output("iptables-save") if not line.startswith(("#", ":"))],
        "control groups": sorted(path for top in hierarchies() for path in top.iterdir() if path.is_dir()),
        "kernel": {name: Path("/proc/sys", name).read_text() for name in KERNEL},
        "network namespaces": set(output("lsns", "--type=net", "--noheadings", "--output=NS")),
        "directories": sorted(path.name for path in Paths.default().cache.iterdir()),
    }


@pytest.fixture(scope="module", params=FORMS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start the cluster, and check after the tests that nothing of it is left on the machine."""
    if os.geteuid() != 0:
        pytest.skip("only root can start nodes")
    if network.exists():
        pytest.skip(f"this machine has a cluster already: it has the interface {HOST_INTERFACE}")
    if not (Paths.default().programs / "debian.tar").exists():
        pytest.skip("the programs of nodes are not built; make e2e-stock builds them")
    before = machine()
    started = cluster_command("up", "--form", request.param)
    try:
        assert started.returncode == 0, started.stdout + started.stderr
        kubectl = Kubectl(tmp_path_factory.mktemp("home"), Paths.default().kubeconfig)
        kubectl("apply", "--filename=-", stdin=WEB)
        kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        yield Cluster(kubectl, started.stdout)
    finally:
        ended = cluster_command("down")
        assert ended.returncode == 0, ended.stdout + ended.stderr
    until(machine, lambda after: after == before, timeout=10, description=f"the state before: {before}")


def test_both_nodes_are_ready_and_run_pods(cluster: Cluster) -> None:
    nodes = cluster.kubectl.json("get", "nodes")["items"]
    ready = {n["metadata"]["name"] for n in nodes for c in n["status"]["conditions"] if c["type"] == "Ready"}
    assert ready == {node.name for node in NODES}
    assert {name: len(pods) for name, pods in cluster.pods().items()} == {node.name: 2 for node in NODES}


def test_a_service_is_reached_by_its_name_from_pods_of_both_nodes(cluster: Cluster) -> None:
    every_pod = {pod for pods in cluster.pods().values() for pod in pods}
    for pod in cluster.one_pod_of_each_node():
        missing = set(every_pod)

        def fetch(pod: str = pod, missing: set[str] = missing) -> tuple[set[str], str]:
            """Fetch once more. kube-proxy chooses the pod that answers at random, once it knows the Service."""
            done = cluster.fetch(pod, WEB_URL)
            missing.discard(done.stdout)
            return missing, done.stderr

        until(fetch, lambda result: not result[0], description=f"answers of every pod to {pod}")


def test_a_pod_reaches_the_api_server_by_its_service_with_its_token(cluster: Cluster) -> None:
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    script = f'curl --silent --cacert {account}/ca.crt --header "Authorization: Bearer $(cat {account}/token)"'
    for pod in cluster.one_pod_of_each_node():
        version = cluster.kubectl("exec", pod, "--", "sh", "-c", f"{script} https://kubernetes.default.svc/version")
        assert '"gitVersion"' in version


def test_exec_logs_and_port_forward_work_on_both_nodes(cluster: Cluster) -> None:
    for pod in cluster.one_pod_of_each_node():
        assert cluster.kubectl("exec", pod, "--", "hostname").strip() == pod
        assert cluster.kubectl("exec", "--stdin", pod, "--", "wc", "--bytes", stdin="x" * 3_000_000) == "3000000\n"
        assert "exit code 7" in cluster.kubectl.fails("exec", pod, "--", "sh", "-c", "exit 7")
        assert "Started HTTP server on port 80" in cluster.kubectl("logs", pod)
        assert forwarded(cluster.kubectl, pod) == pod


def forwarded(kubectl: Kubectl, pod: str) -> str:
    """Return the answer of a pod to a request through `kubectl port-forward`."""
    port = free_port()
    argv = [*kubectl.command(), "port-forward", pod, f"{port}:80"]
    with subprocess.Popen(argv, env=kubectl.env(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Forwarding from")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/hostname", timeout=10) as answer:
                return str(answer.read().decode())
        finally:
            process.terminate()


def test_the_machine_reaches_pods_and_services(cluster: Cluster) -> None:
    pods = {pod["status"]["podIP"] for pod in cluster.kubectl.json("get", "pods", "--selector=app=web")["items"]}
    service = cluster.kubectl.json("get", "service", "web")["spec"]["clusterIP"]
    for address in (*pods, service):
        with urllib.request.urlopen(f"http://{address}/hostname", timeout=10) as answer:
            assert answer.status == 200


def test_processes_of_nodes_reach_services(cluster: Cluster) -> None:
    service = cluster.kubectl.json("get", "service", "web")["spec"]["clusterIP"]
    processes = Processes(Paths.default().processes, Paths.default().logs)
    for node in NODES:
        pid = processes.pid(node.name)
        assert pid is not None
        run(*network.enter(pid), "curl", "--silent", "--fail", "--max-time", "10", f"http://{service}/hostname")


def test_connections_to_other_networks_are_rejected_at_once(cluster: Cluster) -> None:
    for pod in cluster.one_pod_of_each_node():
        # An address that is reserved for documentation: no machine has it.
        done = cluster.fetch(pod, "http://192.0.2.1/")
        assert "Connection refused" in done.stderr or "Couldn't connect to server" in done.stderr, done.stderr


def test_starting_it_again_names_its_kubeconfig(cluster: Cluster) -> None:
    again = cluster_command("up")
    assert again.returncode == 0, again.stderr
    assert "The cluster is up (FORM=" in again.stdout
    export = f"export KUBECONFIG={Paths.default().kubeconfig}"
    assert export in again.stdout.splitlines()
    assert export in cluster.output.splitlines()
