"""ComponentStatus, which is deprecated and read-only.

It shows the health of the store and of the scheduler and the controller manager, probed on 127.0.0.1 at each request.

Upstream: pkg/registry/core/componentstatus, pkg/probe/http.
"""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tetrapod.core.cells import NAME, name_of
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery import field_selectors, labels, status
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.table import Column, TableConvertor

Probe = Callable[[], Awaitable[None]]
_PROBE_TIMEOUT: Final = 1.0
"""Seconds. The components are on this machine."""
_PORTS: Final = {"controller-manager": 10257, "scheduler": 10259}


def definition(rest: Rest) -> ResourceDefinition:
    """Return the definition of componentstatuses, which are probed instead of stored.

    Args:
        rest: a `ComponentStatusRest`.
    """
    return builtin(
        "",
        "componentstatuses",
        Strategy(),
        rest=rest,
        table=TABLE,
    )


class ComponentStatusRest(Rest):
    """The resource `componentstatuses`.

    Args:
        probes: probes by component name; a probe returns if the component is healthy and raises otherwise.
    """

    def __init__(self, probes: dict[str, Probe]) -> None:
        self._probes = probes

    async def get(self, ctx: Context, name: str) -> Object:
        probe = self._probes.get(name)
        if probe is None:
            raise status.not_found(GroupResource("", "componentstatus"), name)
        return await _component_status(name, probe)

    async def list(self, ctx: Context, options: Any) -> Object:
        items = []
        if labels.parse(options.label_selector).matches({}):
            selector = field_selectors.parse(options.field_selector)
            statuses = [
                await _component_status(name, probe)
                for name, probe in self._probes.items()
                if selector.matches({"metadata.name": name})
            ]
            items = [{key: obj[key] for key in ("metadata", "conditions")} for obj in statuses]
        return {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items}


async def _component_status(name: str, probe: Probe) -> Object:
    """Run the probe and return a ComponentStatus.

    Its condition Healthy is "True", or "False" with the error's text if the probe raised any exception.
    """
    try:
        await probe()
        condition = {"type": "Healthy", "status": "True", "message": "ok"}
    except Exception as error:
        condition = {"type": "Healthy", "status": "False", "message": str(error)}
    return {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": [condition]}


def local_components() -> dict[str, Probe]:
    """Return the probes "controller-manager" and "scheduler".

    They request /healthz of the component's default port on 127.0.0.1, with a timeout of 1 second.
    """
    return {name: _health_at(port) for name, port in _PORTS.items()}


def _health_at(port: int) -> Probe:
    async def ask() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # no verification: the server is on this machine
        context.check_hostname, context.verify_mode = (False, ssl.CERT_NONE)
        url = f"https://127.0.0.1:{port}/healthz"
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                try:
                    writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                    response = (await reader.read()).decode(errors="replace")
                finally:
                    writer.close()
        except ConnectionRefusedError as error:
            reason = os.strerror(error.errno or errno.ECONNREFUSED).lower()
            raise ProbeError(f'Get "{url}": dial tcp 127.0.0.1:{port}: connect: {reason}') from None
        except (OSError, TimeoutError) as error:
            raise ProbeError(f'Get "{url}": {error}') from None
        status_line, _, rest = response.partition("\r\n")
        if status_line.split(" ")[1:2] != ["200"]:
            raise ProbeError(rest.partition("\r\n\r\n")[2])

    return ask


class ProbeError(Exception):
    """The error that a probe raises if the component is unhealthy or cannot be reached; its text is the reason."""


def _component_status_row(obj: Object) -> list[Any]:
    condition: Object = next((c for c in obj.get("conditions") or [] if c.get("type") == "Healthy"), {})
    state = {"True": "Healthy", "False": "Unhealthy"}.get(condition.get("status", ""), "Unknown")
    return [name_of(obj), state, condition.get("message", ""), condition.get("error", "")]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Status"),
        Column("Message"),
        Column("Error"),
    ),
    _component_status_row,
)
