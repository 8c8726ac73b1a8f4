"""The condition of FlowSchemas: how often it is written if another server writes the opposite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from support import virtual_time
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.flowcontrol.status import FlowSchemaStatus
from tetrapod.machinery.gvk import Object


class Objects:
    """The part of an informer that the controller uses. A changed object is announced to the handlers."""

    def __init__(self, *objects: Object) -> None:
        self.objects = {("", obj["metadata"]["name"]): obj for obj in objects}
        self.handlers: list[Callable[[Object | None, Object | None], None]] = []
        self.synced = asyncio.Event()
        self.synced.set()

    def get(self, namespace: str, name: str) -> Object | None:
        return self.objects.get((namespace, name))

    def put(self, obj: Object) -> None:
        key = ("", obj["metadata"]["name"])
        old, self.objects[key] = self.objects.get(key), obj
        for handler in self.handlers:
            handler(old, obj)


class Rival:
    """A client whose writes another server overwrites at once, with the opposite status."""

    def __init__(self, schemas: Objects) -> None:
        self._schemas = schemas
        self.times: list[float] = []

    async def patch(self, _resource: Any, _namespace: str, name: str, patch: Object, **_options: Any) -> None:
        self.times.append(asyncio.get_running_loop().time())
        (condition,) = patch["status"]["conditions"]
        opposite = {**condition, "status": "True" if condition["status"] == "False" else "False"}
        schema = {**cast(Object, self._schemas.get("", name)), "status": {"conditions": [opposite]}}
        asyncio.get_running_loop().call_later(0.1, self._schemas.put, schema)


async def _fight(seconds: float) -> list[float]:
    """Return the times of the controller's writes to one FlowSchema."""
    level = {"metadata": {"name": "level"}}
    schema = {"metadata": {"name": "schema"}, "spec": {"priorityLevelConfiguration": {"name": "level"}}}
    schemas, levels = Objects(schema), Objects(level)
    rival = Rival(schemas)
    status = FlowSchemaStatus(cast(Client, rival), cast(Informer, schemas), cast(Informer, levels))
    schemas.put(schema)
    task = asyncio.create_task(status.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return rival.times


def test_a_flow_schema_is_written_six_times_a_minute_at_most() -> None:
    times = virtual_time.run(_fight(3600))
    assert len(times) > 60
    assert all(later - earlier >= 60 for earlier, later in zip(times, times[6:], strict=False))
