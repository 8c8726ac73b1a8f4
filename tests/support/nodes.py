"""Simulated nodes: post the statuses of nodes and of the pods bound to them as kubelets do, so that schedulers and
controllers proceed.

Pods with restart policy Never succeed; all others run and are ready until they are deleted. No container is started.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.wire import Answer

_PERIOD = 0.3
Ask = Callable[..., Answer]


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Nodes:
    """Simulated nodes.

    Args:
        ask: a client that only this object uses, because it is called in another thread.
        kubelet_port: the port of a kubelet on 127.0.0.1 that the nodes name in their statuses; 0 for none.

    Attributes:
        silent: the names of nodes that post nothing, as if they had failed.
    """

    def __init__(self, ask: Ask, names: list[str], kubelet_port: int = 0) -> None:
        self._ask = ask
        self.names = names
        self._kubelet_port = kubelet_port
        self.silent: set[str] = set()
        self._addresses = itertools.count(1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        for name in self.names:
            labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
            self._expect(self._ask("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}}), 201, 409)
        self._post_statuses()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            for turn in itertools.count():
                if self._stop.wait(_PERIOD):
                    return
                if turn % 5 == 0:
                    self._post_statuses()
                self._post_pods()
        except BaseException as error:
            self.failure = error

    def _post_statuses(self) -> None:
        for name in self.names:
            if name not in self.silent:
                status = _node_status(name, self._kubelet_port)
                self._expect(
                    self._ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, _STRATEGIC), 200, 404
                )
                self._renew_lease(name)

    def _renew_lease(self, name: str) -> None:
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now().replace("Z", ".000000Z")}
        if self._ask("PATCH", f"{leases}/{name}", {"spec": spec}, _MERGE).status == 404:
            self._expect(self._ask("POST", leases, {"metadata": {"name": name}, "spec": spec}), 201, 409)

    def _post_pods(self) -> None:
        for pod in self._ask("GET", "/api/v1/pods").json["items"]:
            if pod["spec"].get("nodeName") not in set(self.names) - self.silent:
                continue
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            if pod["metadata"].get("deletionTimestamp"):
                body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
                self._expect(self._ask("DELETE", path, body), 200, 404, 409)
            elif pod["status"].get("phase") == "Pending":
                self._expect(
                    self._ask("PATCH", f"{path}/status", {"status": self._pod_status(pod)}, _STRATEGIC), 200, 404
                )

    def _pod_status(self, pod: Any) -> Any:
        ended = pod["spec"]["restartPolicy"] == "Never"
        ready = "False" if ended else "True"
        state = {"terminated": {"exitCode": 0, "reason": "Completed"}} if ended else {"running": {"startedAt": now()}}
        number = next(self._addresses)
        address = f"10.244.{100 + number // 250}.{number % 250 + 1}"
        return {
            "phase": "Succeeded" if ended else "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": now(),
            "conditions": [_condition(kind, ready) for kind in ("Initialized", "Ready", "ContainersReady")],
            "containerStatuses": [
                {
                    "name": c["name"],
                    "image": c["image"],
                    "imageID": "x",
                    "ready": not ended,
                    "restartCount": 0,
                    "state": state,
                }
                for c in pod["spec"]["containers"]
            ],
        }

    @staticmethod
    def _expect(answer: Answer, *codes: int) -> None:
        assert answer.status in codes, answer


_STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
_MERGE = {"Content-Type": "application/merge-patch+json"}


def _condition(kind: str, status: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": now(),
        "reason": "Kubelet",
        "message": "as a kubelet would say",
    }


def _node_status(name: str, kubelet_port: int) -> Any:
    resources = {"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    kinds = (("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"))
    address = "127.0.0.1" if kubelet_port else "192.0.2.1"
    return {
        "capacity": resources,
        "allocatable": resources,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "conditions": [{**_condition(kind, status), "lastHeartbeatTime": now()} for kind, status in kinds],
        "nodeInfo": {"kubeletVersion": "v1.37.1", "operatingSystem": "linux", "architecture": "amd64"},
    }


@contextmanager
def nodes(ask: Ask, *names: str, kubelet_port: int = 0) -> Iterator[Nodes]:
    simulated = Nodes(ask, list(names), kubelet_port)
    simulated.start()
    try:
        yield simulated
    finally:
        simulated.stop()
