"""`Traffic`: requests through the gate, and the count of their responses."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final
from urllib.parse import urlsplit

from chaos.http import Address, Answer, Connection, NoAnswer, NotSent
from soak.gate import Gate
from soak.worlds import World

_PATIENCE: Final = 20.0
EVERY_STATUS: Final = (200, 201, 400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 429, 500, 501, 503, 504, 505)
"""Statuses that a run must have seen. 410 needs a compaction, which a short run does not wait for."""


class Traffic:
    """The state that all workers share. `pause` is the time between two requests of a worker."""

    def __init__(self, world: World, gate: Gate, pause: float) -> None:
        self.world = world
        self.gate = gate
        self.requests = 0
        self.statuses: Counter[int] = Counter()
        self._pause = pause

    async def ask(
        self, connection: Connection, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Answer:
        """Send a request and count the status of its response: 0 if none comes."""
        self.requests += 1
        try:
            answer = await connection.ask(method, path, body, content_type)
        except (NotSent, NoAnswer):
            answer = Answer(0, b"")
        self.statuses[answer.status] += 1
        await asyncio.sleep(self._pause)
        return answer

    async def raw(self, address: Address, data: bytes) -> int:
        """Send bytes over a connection of their own, and return the status of the response: 0 if the connection is
        closed without one.
        """
        self.requests += 1
        status, (reader, writer) = 0, await self.connect(address)
        try:
            writer.write(data)
            async with asyncio.timeout(_PATIENCE):
                line = await reader.readline()
            status = int(line.split()[1]) if line.startswith(b"HTTP/") else 0
        except (OSError, TimeoutError):
            pass
        finally:
            writer.transport.abort()
        self.statuses[status] += 1
        await asyncio.sleep(self._pause)
        return status

    @staticmethod
    async def connect(address: Address, *, tls: bool = True) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection, without TLS if `tls` is false. Raises OSError."""
        parts = urlsplit(address.url)
        return await asyncio.open_connection(parts.hostname, parts.port, ssl=address.tls if tls else None)

    def missing(self) -> list[str]:
        """Return the statuses that should have been seen and were not."""
        return [f"no response had the status {status}" for status in EVERY_STATUS if not self.statuses[status]]
