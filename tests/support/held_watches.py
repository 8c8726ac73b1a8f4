"""A proxy in front of an etcd that can hold back what its watches send, while everything else passes.

A watch cache behind it falls behind the store, although the store answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

from hpack import Decoder

from tetrapod.generic.http2 import frames

_WATCH = b"/etcdserverpb.Watch/Watch"


class HeldWatches:
    """The proxy. `hold` starts to keep the data of watches back, and `release` sends it."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def hold(self) -> None:
        self._loop.call_soon_threadsafe(self._passing.clear)

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._passing.set)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the proxy in its own thread."""
        started, stop = threading.Event(), asyncio.Event()

        async def main() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self._port = server.sockets[0].getsockname()[1]
            started.set()
            await stop.wait()
            server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        thread = threading.Thread(target=self._loop.run_until_complete, args=(main(),), daemon=True)
        thread.start()
        assert started.wait(10)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(stop.set)
            thread.join(5)
            self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        watches: set[int] = set()
        target, onward = await asyncio.open_connection(self._target.hostname, self._target.port)
        try:
            await asyncio.gather(_requests(reader, onward, watches), self._responses(target, writer, watches))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for stream in (writer, onward):
                stream.close()

    async def _responses(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watches: set[int]) -> None:
        held: asyncio.Queue[bytes] = asyncio.Queue()

        async def send_held() -> None:
            while True:
                data = await held.get()
                await self._passing.wait()
                writer.write(data)

        sender = asyncio.create_task(send_held())
        try:
            while True:
                kind, _, stream, data = await _frame(reader)
                if kind == frames.DATA and stream in watches:
                    held.put_nowait(data)
                else:
                    writer.write(data)
        finally:
            sender.cancel()


async def _requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watches: set[int]) -> None:
    """Pass on the frames of a client, and add the streams of its watches to `watches`."""
    writer.write(await reader.readexactly(len(frames.PREFACE)))
    decoder = Decoder()
    while True:
        kind, flags, stream, data = await _frame(reader)
        if kind == frames.HEADERS:
            assert flags & frames.END_HEADERS
            assert not flags & (frames.PADDED | frames.PRIORITY_FLAG)
            if dict(decoder.decode(data[frames.HEAD_SIZE :], raw=True)).get(b":path") == _WATCH:
                watches.add(stream)
        writer.write(data)


async def _frame(reader: asyncio.StreamReader) -> tuple[int, int, int, bytes]:
    """Read a frame. Return its type, its flags, the number of its stream, and all its bytes."""
    head = await reader.readexactly(frames.HEAD_SIZE)
    payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
    return head[3], head[4], int.from_bytes(head[5:], "big"), head + payload
