"""Relays between the services and the members of etcd, which add latency."""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.request
from collections.abc import Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from support.etcd import Etcd
from support.server import free_port

_PART: Final = 65536


class Links:
    """A relay on loopback in front of each member of etcd.

    It forwards all bytes in both directions. The kernel's network emulation (netem) would do the same, but many kernels
    lack it.

    Attributes:
        delay: the seconds after which bytes are forwarded, in each direction.
    """

    def __init__(self, members: Sequence[Etcd]) -> None:
        self.delay = 0.0
        self._members = {free_port(): member for member in members}
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self._members]

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def round_trip(self) -> float:
        """Return the seconds that a request to the first member takes."""
        began = time.monotonic()
        with urllib.request.urlopen(f"{self.urls[0]}/version", timeout=30) as answer:
            answer.read()
        return time.monotonic() - began

    def close(self) -> None:
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        for port, member in self._members.items():
            self._servers.append(await asyncio.start_server(partial(self._relay, member), "127.0.0.1", port))

    async def _cancel(self) -> None:
        """Stop listening, and end all connections."""
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _relay(self, member: Etcd, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = urlsplit(member.url)
        try:
            answers, requests = await asyncio.open_connection(address.hostname, address.port)
        except OSError:
            writer.transport.abort()
            return
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._forward(reader, requests))
                directions.create_task(self._forward(answers, writer))
        except* OSError:
            pass  # one side has reset its connection
        finally:
            writer.transport.abort()
            requests.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read on while earlier bytes wait, so that latency does not limit the bandwidth."""
        delayed: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            group.create_task(_deliver(delayed, writer))
            while True:
                data = await reader.read(_PART)
                delayed.put_nowait((time.monotonic() + self.delay, data))
                if not data:
                    return


async def _deliver(delayed: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
    """Write each part when it is due, and end the stream after an empty part."""
    while True:
        due, data = await delayed.get()
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        if not data:
            writer.write_eof()
            return
        writer.write(data)
        await writer.drain()
