"""The controller that deletes finished Jobs after ttlSecondsAfterFinished.

Upstream: pkg/controller/ttlafterfinished.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import parse

JOBS: Final = GroupVersionResource("batch", "v1", "jobs")


class TTLAfterFinished:
    """The controller that deletes Jobs ttlSecondsAfterFinished seconds after they finish."""

    name = "ttl-after-finished-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._jobs = Informer(client, JOBS)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(self.name, self._sync)
        self._jobs.handlers.append(self._on_job)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.run())
            await self._jobs.synced.wait()
            group.create_task(self._queue.run())

    def _on_job(self, old: Object | None, new: Object | None) -> None:
        if new is not None and due(new) is not None:
            self._queue.add((new["metadata"]["namespace"], new["metadata"]["name"]))

    async def _sync(self, key: tuple[str, str]) -> None:
        try:
            job = await self._client.get(JOBS, *key)
        except StatusError as error:
            if error.code == 404:
                return
            raise
        due_time = due(job)
        if due_time is None:
            return
        if (remaining := due_time - time.time()) > 0:
            self._queue.add_after(key, remaining)
            return
        options = {"propagationPolicy": "Foreground", "preconditions": {"uid": job["metadata"]["uid"]}}
        await self._client.delete(JOBS, *key, options)


def due(job: Object) -> float | None:
    """Return the time to delete the Job, in seconds since the epoch.

    Returns:
        None if it has no ttlSecondsAfterFinished, has not finished or is being deleted.
    """
    ttl = (job.get("spec") or {}).get("ttlSecondsAfterFinished")
    if ttl is None or job["metadata"].get("deletionTimestamp"):
        return None
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            return parse(condition["lastTransitionTime"]).timestamp() + float(ttl)
    return None
