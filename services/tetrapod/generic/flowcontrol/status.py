"""`FlowSchemaStatus`: maintains the condition Dangling of FlowSchemas.

The condition says whether the referenced priority level is missing. As upstream, it is maintained by the API server and
not by a controller manager.
Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go, syncFlowSchemaStatus
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import Final

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.generic.flowcontrol.rule_matching import level_name
from tetrapod.machinery.conditions import find_condition
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339

GROUP: Final = "flowcontrol.apiserver.k8s.io"
FLOW_SCHEMAS: Final = GroupVersionResource(GROUP, "v1", "flowschemas")
MANAGER: Final = "api-priority-and-fairness-config-consumer-v1"
_MOST_UPDATES: Final = 6
"""The updates of one FlowSchema in a minute. Servers with different configurations would otherwise overwrite each
other's condition without end.
"""
_DELAYS: Final = (30, 75)
"""The least and the most seconds after which a further update is tried."""


class FlowSchemaStatus:
    """The controller of the condition Dangling. It adds handlers to the informers, which the caller runs.

    Args:
        client: patches the status of FlowSchemas.
        schemas: the informer of FlowSchemas.
        levels: the informer of PriorityLevelConfigurations.
    """

    def __init__(self, client: Client, schemas: Informer, levels: Informer) -> None:
        self._client = client
        self._schemas = schemas
        self._levels = levels
        self._queue: WorkQueue[str] = WorkQueue("flow-schema-status", self._sync)
        self._updates: dict[str, deque[float]] = {}
        """The times of the last updates of each FlowSchema (`loop.time()`), at most `_MOST_UPDATES`."""
        self._schemas.handlers.append(self._schema_changed)
        self._levels.handlers.append(self._level_changed)

    async def run(self) -> None:
        """Wait until the informers have synced, then update conditions after each change, until cancelled."""
        await self._levels.synced.wait()
        await self._schemas.synced.wait()
        await self._queue.run()

    def _schema_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._queue.add(new["metadata"]["name"])
        elif old is not None:
            self._updates.pop(old["metadata"]["name"], None)

    def _level_changed(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None:  # it was created or deleted
            name = (new or old or {})["metadata"]["name"]
            for schema in self._schemas.objects.values():
                if level_name(schema) == name:
                    self._queue.add(schema["metadata"]["name"])

    async def _sync(self, name: str) -> None:
        schema = self._schemas.get("", name)
        if schema is None:
            return
        condition = self._condition(level_name(schema))
        existing = find_condition(schema, condition["type"]) or {}
        if all(existing.get(key) == condition[key] for key in ("status", "reason", "message")):
            return
        updates, now = self._updates.setdefault(name, deque(maxlen=_MOST_UPDATES)), asyncio.get_running_loop().time()
        if len(updates) == _MOST_UPDATES and updates[0] > now - 60:
            self._queue.add_after(name, random.uniform(*_DELAYS))
            return
        updates.append(now)
        if existing.get("status") == condition["status"]:
            condition["lastTransitionTime"] = existing.get("lastTransitionTime", condition["lastTransitionTime"])
        patch = {
            "kind": "FlowSchema",
            "apiVersion": f"{GROUP}/v1",
            "metadata": {"name": name},
            "status": {"conditions": [condition]},
        }
        try:
            await self._client.patch(
                FLOW_SCHEMAS, "", name, patch, type="apply", subresource="status", fieldManager=MANAGER, force="true"
            )
        except StatusError as error:
            if error.code != 404:  # it was deleted
                raise

    def _condition(self, level: str) -> Object:
        exists = self._levels.get("", level) is not None
        text = f"This FlowSchema references the PriorityLevelConfiguration object named {go_quote(level)}"
        return {
            "type": "Dangling",
            "status": "False" if exists else "True",
            "lastTransitionTime": now_rfc3339(),
            "reason": "Found" if exists else "NotFound",
            "message": f"{text} {'and it exists' if exists else 'but there is no such object'}",
        }
