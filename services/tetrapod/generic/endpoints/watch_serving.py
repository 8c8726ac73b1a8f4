"""`WatchServing`: one watch being served, until timeout, client or server ends it.

As upstream, a watch-list is compressed if the client accepts gzip. Each write is a separate deflate block, so that an
idle watch keeps almost no compression state. The block of an event is compressed once for all watchers.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from typing import Final

from tetrapod.generic.endpoints.large_events import PIECE, are_large, in_parts, turn
from tetrapod.generic.endpoints.watch_frames import BATCH, Frames
from tetrapod.generic.endpoints.watch_metrics import TO_INITIAL_END
from tetrapod.generic.http.gzip_encoding import BlockStream, block_of
from tetrapod.generic.http.request import ClientGone, Request, StreamWriter
from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.storage.cacher.counters import counters_of
from tetrapod.generic.storage.watch import Watch, WatchEvent
from tetrapod.machinery.requestinfo import scope_of

log = logging.getLogger(__name__)

LAST_BOOKMARK: Final = 2.0
"""Seconds before the timeout at which a watch with bookmarks gets a last one. Upstream:
cacheWatcher.nextBookmarkTime
"""
HIGH_WATER: Final = 1 << 20
"""Unsent bytes above which the server waits for the client."""
MOST_BEHIND: Final = 4096
"""Events that may be queued for a slow client."""


class WatchServing:
    """One watch being served. Events are written directly when the cache applies a change, without waking a task.

    While the client is slow, events wait in a queue as event objects, which all watches share, and are encoded later. A
    client that stays slow is disconnected. Large events wait in that queue too, and are written in parts
    (large_events.py).

    Args:
        source: the watch.
        frames: encodes its events.
        seconds: the timeout of the watch.
        request: the request of the client.
        gzip: whether the response is compressed.
        bookmarks: whether the client allows bookmarks, and so gets one before the timeout.
        separate: whether each event is written on its own, because each write is a message.
    """

    def __init__(
        self,
        source: Watch,
        frames: Frames,
        seconds: float,
        request: Request,
        *,
        gzip: bool,
        bookmarks: bool,
        separate: bool = False,
    ) -> None:
        self._separate = separate
        self._bookmarks = bookmarks
        self._gzip = BlockStream() if gzip else None
        self._source, self._frames, self._seconds = source, frames, seconds
        self._received, self._scope = request.received, scope_of(request.info) if request.info is not None else ""
        self._behind: list[WatchEvent] = []
        self._catching_up: asyncio.Task[None] | None = None
        self._unwritten = memoryview(b"")  # the rest of an event of which a part is written

    async def run(self, writer: StreamWriter) -> None:
        """Write the events until the watch ends or its timeout expires, and close the watch."""
        self._writer = writer
        last_bookmark: asyncio.TimerHandle | None = None
        if self._bookmarks and self._seconds > LAST_BOOKMARK:
            last_bookmark = asyncio.get_running_loop().call_later(
                self._seconds - LAST_BOOKMARK, self._source.send_bookmark
            )
        try:
            if self._seconds > 0:  # upstream's `timeoutSeconds=-1` has expired before the first event
                async with asyncio.timeout(self._seconds) as limit:
                    await self._serve()
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._source.close()
            if last_bookmark is not None:
                last_bookmark.cancel()
            if self._catching_up is not None:
                self._catching_up.cancel()
            writer.write(bytes(self._unwritten))
        if self._gzip is not None:
            writer.write(self._gzip.end())

    @traced(
        "WatchServer.HandleHTTP",
        lambda self: self._frames.span_attributes(),
        events=("About to start writing response", ""),
    )
    async def _serve(self) -> None:
        await (self._pull() if self._frames.asynchronous else self._push())

    async def _push(self) -> None:
        source, first = self._source, True
        async for batch in source.initial():
            for part in in_parts(batch, self._frames.at_once):
                if not first:
                    await asyncio.sleep(0)
                first = False
                if not await self._send_part(part):
                    return
                await self._keep_pace()
            self._begun(batch)
        source.subscribe(self._take)
        await source.ended()
        if self._catching_up is not None:
            await self._catching_up

    def _take(self, events: Sequence[WatchEvent]) -> None:
        """Write events, or queue them while the client is slow. This is the sink of the watch, called by the cache."""
        if self._catching_up is not None:
            self._behind.extend(events)
            if len(self._behind) > MOST_BEHIND:
                log.warning("a watch was ended: its client is too slow")
                group, _, resource = self._frames.resource_key
                counters_of(group, resource).terminated += 1
                self._behind.clear()
                self._source.close()
            return
        if are_large(events):
            self._behind.extend(events)
            self._catching_up = asyncio.create_task(self._catch_up())
            return
        frames = list(map(self._frames.shared_frame, events))
        blocks = list(map(self._frames.shared_block, events, frames)) if self._gzip is not None else frames
        if not self._write(frames, blocks):
            self._source.close()
        elif self._writer.buffered() > HIGH_WATER:
            self._catching_up = asyncio.create_task(self._catch_up())

    async def _catch_up(self) -> None:
        with contextlib.suppress(ClientGone):
            await self._writer.drain()
            while self._behind:
                batch = self._behind[:BATCH]
                del self._behind[:BATCH]
                for part in in_parts(batch, BATCH):
                    if not await self._send_part(part):
                        self._source.close()
                        return
                    await self._keep_pace()
            self._catching_up = None

    async def _pull(self) -> None:
        """Write the events until the watch ends, for a resource whose objects a conversion webhook converts.

        Before a batch of events is encoded, the webhook converts its objects.
        """
        frames = self._frames
        async for batch in self._source:
            await frames.representation.conversion.ready([event.entry for event in batch if event.entry is not None])
            for part in in_parts(batch, len(batch)):
                if not await self._send_part(part):
                    return
                await self._keep_pace()
            self._begun(batch)

    def _begun(self, batch: Sequence[WatchEvent]) -> None:
        """If `batch` completes the initial events, record the time since the request arrived in the metric."""
        if batch and batch[-1].initial_end:
            TO_INITIAL_END.observe((*self._frames.resource_key, self._scope), time.monotonic() - self._received)

    async def _send_part(self, events: Sequence[WatchEvent]) -> bool:
        """Encode and write a part of `in_parts`. A large event is written in pieces, as fast as the client reads it.

        Return False if the watch must end, because events cannot be encoded in the form that the client accepts; else
        True.

        Raises:
            ClientGone: the client has disconnected.
        """
        if not are_large(events):
            return await self._send(list(map(self._frames.frame, events)))
        await turn()
        (event,) = events
        frame = self._frames.shared_frame(event)
        if self._gzip is not None:
            return self._write([frame], [self._frames.shared_block(event, frame)])
        if self._separate or len(frame) <= PIECE:
            return self._write([frame], [frame])
        self._frames.sent.count([frame])
        self._unwritten = memoryview(frame)
        while self._unwritten:
            piece, self._unwritten = bytes(self._unwritten[:PIECE]), self._unwritten[PIECE:]
            self._writer.write(piece)
            if self._unwritten:
                await self._writer.drain()
                await turn()
        return True

    async def _send(self, frames: list[bytes]) -> bool:
        """Write frames (encoded events), compressing them only for this watch.

        Return False if the watch must end, because events cannot be encoded in the form that the client accepts; else
        True.
        """
        return self._write(
            frames, [await block_of(b"".join(frames))] if self._gzip is not None and any(frames) else frames
        )

    def _write(self, frames: list[bytes], written: list[bytes]) -> bool:
        """Write frames (encoded events).

        Args:
            frames: the uncompressed frames, for metrics and the checksum.
            written: the bytes to send: the frames, or their compressed blocks.

        Returns:
            False if the watch must end, because events cannot be encoded in the form that the client accepts; else
            True.
        """
        if self._separate:
            return self._write_separately(frames)
        data = written[0] if len(written) == 1 else b"".join(written)
        if not data and self._frames.impossible:
            return False
        self._writer.write(data if self._gzip is None else self._gzip.take(frames, data))
        self._frames.sent.count(frames)
        return True

    def _write_separately(self, frames: list[bytes]) -> bool:
        if self._frames.impossible and not any(frames):
            return False
        for frame in frames:
            self._writer.write(frame)
        self._frames.sent.count(frames)
        return True

    async def _keep_pace(self) -> None:
        if self._writer.buffered() > HIGH_WATER:
            await self._writer.drain()
