"""`componentstatuses`, deprecated and read-only: the store behind this server (upstream: pkg/registry/core/componentstatus)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.machinery import fields, labels, status
from tetrapod.machinery.gvk import GroupResource, Object

Probe = Callable[[], Awaitable[None]]


class ComponentStatusRest(Rest):
    """`probes` by component name; each returns when healthy and raises when not."""

    def __init__(self, probes: dict[str, Probe]) -> None:
        self._probes = probes

    async def get(self, ctx: Context, name: str) -> Object:
        probe = self._probes.get(name)
        if probe is None:
            raise status.not_found(GroupResource("", "componentstatus"), name)
        return await _look(name, probe)

    async def list(self, ctx: Context, options: Any) -> Object:
        items = []
        if labels.parse(options.label_selector).matches({}):
            wanted = fields.parse(options.field_selector)
            found = [await _look(name, probe) for name, probe in self._probes.items() if wanted.matches({"metadata.name": name})]
            items = [{key: obj[key] for key in ("metadata", "conditions")} for obj in found]
        return {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items}


async def _look(name: str, probe: Probe) -> Object:
    try:
        await probe()
        condition = {"type": "Healthy", "status": "True", "message": "ok"}
    except Exception as error:
        condition = {"type": "Healthy", "status": "False", "error": str(error)}
    return {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": [condition]}
