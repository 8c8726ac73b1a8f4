"""A run: many informers, whose server is restarted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from bench import objects, processes
from bench.client import Client
from bench.targets import TOKEN, Target
from scale import generator
from scale.results import Figures, figures

OBJECTS: Final = 2_000
NAMESPACE: Final = "scale-watches"


def run(key: str, target: Target, watchers: int, directory: Path) -> Figures:
    """Start the informers, restart the server, wait until all of them watch again, and return what was measured.

    Raises:
        LoadFailed: the load generator gave up.
        NotStarted: the server did not start.
        Rejected: the server did not create the objects.
    """
    target.fresh()
    target.start()
    asyncio.run(_fill(Client(target.url, TOKEN)))
    out = directory / "result.json"
    with generator.running(target.url, "storm", ["--watchers", str(watchers), "--relist", "--out", out]) as load:
        load.wait_for("watching")
        target.stop()
        load.wait_for("lost")
        ready = target.start()
        recovered = load.wait_for("recovered")
        load.finish()
    return figures(
        "storm",
        watchers,
        key,
        ready=ready,
        recovered=recovered["seconds"],
        relists=recovered["relists"],
        errors=sum(recovered["errors"].values()),
        peak=sum(map(processes.peak_resident, target.pids)),
    )


async def _fill(client: Client) -> None:
    await client.create("/api/v1/namespaces", objects.namespace(NAMESPACE))
    config_maps = (objects.config_map(f"config-{number}") for number in range(OBJECTS))
    await client.create_all(f"/api/v1/namespaces/{NAMESPACE}/configmaps", config_maps)
