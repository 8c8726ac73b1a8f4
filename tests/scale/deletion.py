"""A run: all objects of a namespace are deleted by one request, while another user reads."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from bench import objects, processes
from bench.client import Client, Rejected
from bench.targets import QUIET, TOKEN, USERS, Target
from scale import generator
from scale.results import Figures, figures
from scale.store import store_of
from support.large_store import fill

NAMESPACE: Final = "scale-0"
"""Where `support.large_store.fill` puts objects."""
INTERVAL: Final = 0.01
_PATIENCE: Final = 20.0
_READ: Final = "/api/v1/namespaces/default/configmaps/one"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


def run(key: str, target: Target, count: int, directory: Path) -> Figures:
    """Fill the namespace, delete its objects, and return what was measured.

    Raises:
        LoadFailed: the load generator gave up.
        NotStarted: the server did not start.
        Rejected: the server did not answer as it should.
    """
    target.fresh()
    target.start()
    target.stop()
    asyncio.run(_fill(target, count))
    target.start()
    reader = Client(target.url, QUIET)
    asyncio.run(_prepare(Client(target.url, TOKEN), reader))
    processes.settle(target.pids, timeout=60)
    latencies, deleted = asyncio.run(_delete(target, reader, directory))
    latencies.sort()
    return figures(
        "deletion",
        count,
        key,
        requests=deleted["requests"],
        answered=deleted["answered"],
        seconds=deleted["seconds"],
        p50=latencies[len(latencies) // 2],
        p99=latencies[len(latencies) * 99 // 100],
        peak=sum(map(processes.peak_resident, target.pids)),
    )


async def _fill(target: Target, count: int) -> None:
    async with store_of(target) as backend:
        await fill(backend, count)


async def _prepare(client: Client, reader: Client) -> None:
    """Create what the other user reads, and wait until it may."""
    await client.create("/api/v1/namespaces", objects.namespace(NAMESPACE))
    await client.create("/api/v1/namespaces/default/configmaps", objects.config_map("one"))
    subject = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": USERS}
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    await client.create(f"{_RBAC}/clusterroles", {"metadata": {"name": "scale"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scale"}
    binding = {"metadata": {"name": "scale"}, "roleRef": role, "subjects": [subject]}
    await client.create(f"{_RBAC}/clusterrolebindings", binding)
    deadline = time.monotonic() + _PATIENCE
    while (answer := await reader.request("GET", _READ)).status != 200:
        if time.monotonic() > deadline:
            raise Rejected(f"GET {_READ}: {answer.status} {answer.body[:200].decode(errors='replace')}")
        await asyncio.sleep(INTERVAL)


async def _delete(target: Target, reader: Client, directory: Path) -> tuple[list[float], dict[str, float]]:
    """Delete the objects. Return the latencies of the other user's reads, and the durations of the deletion."""
    deletion = asyncio.create_task(asyncio.to_thread(_delete_all, target, directory))
    connection = await reader.connection()
    latencies = []
    try:
        due = time.monotonic()
        while not deletion.done():
            answer = await connection.request("GET", _READ)
            if answer.status != 200:
                raise Rejected(f"GET {_READ}: {answer.status}")
            latencies.append(time.monotonic() - due)
            due = max(due + INTERVAL, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
    finally:
        connection.close()
    return latencies, await deletion


def _delete_all(target: Target, directory: Path) -> dict[str, float]:
    flags: list[str | Path] = [
        "--namespace",
        NAMESPACE,
        "--collection",
        "configmaps",
        "--out",
        directory / "result.json",
    ]
    with generator.running(target.url, "drain", flags) as load:
        end = load.wait_for("end")
        load.finish()
    return {name: float(end[name]) for name in ("requests", "answered", "seconds")}
