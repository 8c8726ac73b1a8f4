"""An HTTP proxy that only knows CONNECT, as konnectivity's proxy server in the mode http-connect."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class ConnectProxy:
    """The proxy. It resolves names by `names` and rejects all others.

    Attributes:
        targets: the targets of all requests.
        names: the ports of the servers on 127.0.0.1, by the target as it is requested.
    """

    def __init__(self, names: dict[str, int]) -> None:
        self.targets: list[str] = []
        self.names = names

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            with suppress(OSError, EOFError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, target, _ = head.split("\r\n")[0].split(" ")
                assert method == "CONNECT"
                self.targets.append(target)
                port = self.names.get(target)
                if port is None:
                    writer.write(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
                    return
                onward, outward = await asyncio.open_connection("127.0.0.1", port)
                writers.append(outward)
                writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
                await asyncio.gather(_copy(reader, outward), _copy(onward, writer))
        finally:
            for one in writers:
                one.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextmanager
def connect_proxy(
    names: dict[str, int], *, unix: Path | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[ConnectProxy, int]]:
    """Run a proxy in a thread, and yield it with its port.

    Args:
        names: see `ConnectProxy`.
        unix: the Unix socket to listen at; None for a TCP port.
        tls: the TLS context of the port; None for none.
    """
    proxy, loop = ConnectProxy(names), asyncio.new_event_loop()

    async def listen() -> asyncio.Server:
        if unix is not None:
            return await asyncio.start_unix_server(proxy.serve, unix)
        return await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls)

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(10)
    port = 0 if unix is not None else server.sockets[0].getsockname()[1]
    try:
        yield proxy, port
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0.05)  # transports close their sockets in later iterations of the loop
