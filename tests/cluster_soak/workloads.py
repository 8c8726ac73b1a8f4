"""Workloads that change all the time: Deployments, a StatefulSet, a DaemonSet, Jobs, a CronJob, and drains."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from cluster.commands import run
from cluster.settings import NODES, Node, Paths
from support.https_client import HttpsClient, created, patched
from support.service_accounts import wait_for_service_account

NAMESPACE: Final = "soak"
CORE: Final = f"/api/v1/namespaces/{NAMESPACE}"
APPS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}"
BATCH: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}"
DEPLOYMENTS: Final = ("web", "api", "worker")
CRON_JOB: Final = "minutely"
_AGNHOST: Final = "registry.k8s.io/e2e-test-images/agnhost:2.66.1"
_BUSYBOX: Final = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
_MOST_REPLICAS: Final = 6
_ROLLED: Final = [*(f"deployments/{name}" for name in DEPLOYMENTS), "statefulsets/store", "daemonsets/agent"]


def _pod(name: str, *command: str, image: str = _AGNHOST, **spec: Any) -> dict[str, Any]:
    """Return the template of a pod with one container. Its label `app` is the name."""
    container: dict[str, Any] = {"name": "main", "image": image, "command": list(command)}
    if image == _AGNHOST:
        container["readinessProbe"] = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1}
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec},
    }


def _server(name: str, **spec: Any) -> dict[str, Any]:
    return _pod(name, "/agnhost", "netexec", **spec)


@dataclass
class Workloads:
    """The workloads in the namespace `soak` of a cluster.

    Args:
        client: an administrator.
        paths: the directories of the cluster, for kubectl.
        choices: the source of randomness.
        counts: the changes, by their kind.
    """

    client: HttpsClient
    paths: Paths
    choices: random.Random
    counts: Counter[str]

    def create(self) -> None:
        """Create them."""
        created(self.client, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        wait_for_service_account(self.client.call, NAMESPACE)
        for name in DEPLOYMENTS:
            created(self.client, f"{APPS}/deployments", _workload(name, _server(name), replicas=2))
            created(self.client, f"{CORE}/services", _service(name))
        store = _workload("store", _server("store"), replicas=2, serviceName="store")
        created(self.client, f"{APPS}/statefulsets", store)
        created(self.client, f"{CORE}/services", _service("store", clusterIP="None"))
        created(self.client, f"{APPS}/daemonsets", _workload("agent", _server("agent")))
        job = {"spec": {"backoffLimit": 20, "template": _task("cron")}}
        cron = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": job}
        created(self.client, f"{BATCH}/cronjobs", {"metadata": {"name": CRON_JOB}, "spec": cron})

    def change(self, number: int) -> None:
        """Scale and roll out what is there, and start a Job. `number` is the number of the round."""
        for name in DEPLOYMENTS:
            replicas = self.choices.randint(1, _MOST_REPLICAS)
            patched(self.client, f"{APPS}/deployments/{name}/scale", {"spec": {"replicas": replicas}})
            self.counts["Deployments scaled"] += 1
        rolled = self.choices.choice(_ROLLED)
        round_of = {"metadata": {"annotations": {"round": str(number)}}}
        patched(self.client, f"{APPS}/{rolled}", {"spec": {"template": round_of}})
        self.counts["rollouts"] += 1
        spec = {"completions": 4, "parallelism": 2, "backoffLimit": 20, "ttlSecondsAfterFinished": 60}
        job = {"metadata": {"name": f"job-{number}"}, "spec": {**spec, "template": _task("job")}}
        created(self.client, f"{BATCH}/jobs", job)
        self.counts["Jobs"] += 1

    def drain(self, number: int) -> Node:
        """Drain a node by `kubectl drain`, each in turn, and return it. It stays unschedulable."""
        node = NODES[number % len(NODES)]
        self._kubectl("drain", node.name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=120s")
        self.counts["drains"] += 1
        return node

    def uncordon(self, node: Node) -> None:
        """Let a node take pods again."""
        self._kubectl("uncordon", node.name)

    def _kubectl(self, *arguments: str) -> None:
        run(self.paths.programs / "kubectl", f"--kubeconfig={self.paths.kubeconfig}", *arguments, timeout=180)


def _workload(name: str, template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": template["metadata"]["labels"]}
    return {"metadata": {"name": name}, "spec": {"selector": selector, "template": template, **spec}}


def _service(name: str, **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80, "targetPort": 8080}]
    return {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports, **spec}}


def _task(name: str) -> dict[str, Any]:
    """Return the template of a pod that ends by itself."""
    return _pod(name, "sh", "-c", "sleep 1", image=_BUSYBOX, restartPolicy="OnFailure")
