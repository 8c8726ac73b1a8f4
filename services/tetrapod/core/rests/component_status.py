"""`componentstatuses`, deprecated and read-only: the store, and the components that upstream expects on this machine.

Upstream: pkg/registry/core/componentstatus, pkg/probe/http.
"""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.machinery import fields, labels, status
from tetrapod.machinery.gvk import GroupResource, Object

Probe = Callable[[], Awaitable[None]]

_PATIENCE: Final = 1.0
_PORTS: Final = {"controller-manager": 10257, "scheduler": 10259}


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
        condition = {"type": "Healthy", "status": "False", "message": str(error)}
    return {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": [condition]}


def local_components() -> dict[str, Probe]:
    """The controller manager and the scheduler, asked for their health where they listen by default."""
    return {name: _health_at(port) for name, port in _PORTS.items()}


def _health_at(port: int) -> Probe:
    async def ask() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # whoever answers here is on this machine
        url = f"https://127.0.0.1:{port}/healthz"
        try:
            async with asyncio.timeout(_PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                try:
                    writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                    answer = (await reader.read()).decode(errors="replace")
                finally:
                    writer.close()
        except ConnectionRefusedError as error:
            why = os.strerror(error.errno or errno.ECONNREFUSED).lower()
            raise ProbeError(f'Get "{url}": dial tcp 127.0.0.1:{port}: connect: {why}') from None
        except (OSError, TimeoutError) as error:
            raise ProbeError(f'Get "{url}": {error}') from None
        status_line, _, rest = answer.partition("\r\n")
        if status_line.split(" ")[1:2] != ["200"]:
            raise ProbeError(rest.partition("\r\n\r\n")[2])

    return ask


class ProbeError(Exception):
    """A component that is not healthy; the text says why."""
