"""A run: a cluster whose nodes are played by kwok, with upstream's controller manager and scheduler."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from bench import objects
from bench.client import Client, Rejected
from bench.processes import cpu_of
from bench.targets import TOKEN, Target
from scale.results import Figures, figures
from scale.usage import Sampler
from support import stock
from support.server import end, free_port, without_cluster

PODS_PER_NODE: Final = 30
REPLICAS: Final = 100
"""Pods of each Deployment."""
NAMESPACE: Final = "kwok"
_BUILDER: Final = Path(__file__).parents[2] / "tools" / "kwok.sh"
_DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_RATE: Final = ("--kube-api-qps=500", "--kube-api-burst=1000")
"""By default the controller manager sends 20 requests a second, and the scheduler 50."""
_PATIENCE: Final = 900.0


def run(key: str, target: Target, nodes: int, directory: Path) -> Figures:
    """Start a cluster, create its pods, wait until they are ready, delete them, and return what was measured.

    Raises:
        NotStarted: the server did not start.
        OSError: the cluster did not come to the expected state within 15 minutes.
        Rejected: the server did not create an object.
        CalledProcessError: a program could not be built.
    """
    subprocess.run([stock.BUILDER], check=True, stdout=subprocess.DEVNULL)
    built = Path(subprocess.run([_BUILDER], check=True, capture_output=True, text=True).stdout.strip())
    target.fresh()
    target.start()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(_kubeconfig(target.url)))
    with ExitStack() as stack:
        stack.enter_context(stock.controller_manager(directory, kubeconfig, *_RATE, "--leader-elect=false"))
        stack.enter_context(stock.scheduler(directory, kubeconfig, *_RATE, "--leader-elect=false"))
        player = stack.enter_context(_kwok(built, directory, kubeconfig))
        with Sampler(target.pids) as server:
            values = asyncio.run(_measure(Client(target.url, TOKEN), target, nodes, player))
    return figures("kwok", nodes, key, memory=server.used().memory, **values)


async def _measure(client: Client, target: Target, nodes: int, player: int) -> dict[str, float]:
    """Return durations in seconds, and CPU seconds of the server and of kwok.

    Args:
        player: the process id of kwok.
    """
    pods = nodes * PODS_PER_NODE
    begun = time.monotonic()
    await client.create_all("/api/v1/nodes", map(_node, range(nodes)))
    await _until(_ready_nodes(client, nodes), f"{nodes} ready nodes")
    ready = time.monotonic() - begun
    await client.create("/api/v1/namespaces", objects.namespace(NAMESPACE))
    used, of_kwok, begun = cpu_of(target.pids), cpu_of([player]), time.monotonic()
    await client.create_all(_DEPLOYMENTS, (_deployment(first, pods) for first in range(0, pods, REPLICAS)))
    await _until(_ready_pods(client, pods), f"{pods} ready pods")
    running, used_running = time.monotonic() - begun, cpu_of(target.pids) - used
    of_kwok = cpu_of([player]) - of_kwok
    used, begun = cpu_of(target.pids), time.monotonic()
    answer = await client.request("DELETE", _DEPLOYMENTS, {"propagationPolicy": "Background"})
    if answer.status != 200:
        raise Rejected(f"DELETE {_DEPLOYMENTS}: {answer.status} {answer.body[:200].decode(errors='replace')}")
    await _until(_no_pods(client), "no pods")
    deleted, used_deleted = time.monotonic() - begun, cpu_of(target.pids) - used
    return {
        "pods": pods,
        "ready": ready,
        "running": running,
        "deleted": deleted,
        "cpu_running": used_running,
        "cpu_deleted": used_deleted,
        "cpu_kwok": of_kwok,
    }


def _ready_nodes(client: Client, wanted: int) -> Callable[[], Awaitable[bool]]:
    async def done() -> bool:
        found = (await client.request("GET", "/api/v1/nodes?resourceVersion=0")).object()["items"]
        return wanted == sum(map(_is_ready, found))

    return done


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _ready_pods(client: Client, wanted: int) -> Callable[[], Awaitable[bool]]:
    async def done() -> bool:
        found = (await client.request("GET", f"{_DEPLOYMENTS}?resourceVersion=0")).object()["items"]
        ready: int = sum(deployment["status"].get("readyReplicas", 0) for deployment in found)
        return ready == wanted

    return done


def _no_pods(client: Client) -> Callable[[], Awaitable[bool]]:
    async def done() -> bool:
        return not (await client.request("GET", f"{_PODS}?limit=1")).object()["items"]

    return done


async def _until(done: Callable[[], Awaitable[bool]], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not await done():
        if time.monotonic() > deadline:
            raise OSError(f"after {_PATIENCE:.0f} s there were not {what}")
        await asyncio.sleep(0.5)


def _node(number: int) -> dict[str, Any]:
    labels = {"type": "kwok", "kubernetes.io/hostname": f"node-{number}"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}", "labels": labels}}


def _deployment(first: int, pods: int) -> dict[str, Any]:
    """Return a Deployment of `REPLICAS` pods, or of those that are left after `first`."""
    name = f"web-{first // REPLICAS}"
    container = {"name": "web", "image": "example.com/web", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {
        "replicas": min(REPLICAS, pods - first),
        "selector": {"matchLabels": {"app": name}},
        "template": template,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "scale", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "scale", "user": {"token": TOKEN}}],
        "contexts": [{"name": "scale", "context": {"cluster": "scale", "user": "scale"}}],
        "current-context": "scale",
    }


@contextmanager
def _kwok(built: Path, directory: Path, kubeconfig: Path) -> Iterator[int]:
    """Run kwok for all nodes, and yield its process id."""
    argv: list[str | Path] = [built / "kwok", f"--kubeconfig={kubeconfig}", f"--config={built / 'stages.yaml'}"]
    argv += ["--manage-all-nodes=true", "--node-lease-duration-seconds=40"]
    argv.append(f"--server-address=127.0.0.1:{free_port()}")
    with (directory / "kwok.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env={**without_cluster(), "HOME": str(directory)})
    try:
        yield process.pid
    finally:
        end(process)
