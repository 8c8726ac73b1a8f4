"""`WatchStream`: multiplexes all watches of this process over one gRPC stream, with watch IDs that the client assigns.

One progress request therefore serves all watches. The stream is opened for the first watch and reopened after an
error. The watches of a broken stream end with Unavailable, and their owners resume them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from itertools import count
from typing import Final

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.rpc import Call, RpcError
from tetrapod.generic.storage.backend import BackendEvent, Compacted, KeyValue, WatchBatch
from tetrapod.generic.storage.etcd import etcd_pb2 as pb
from tetrapod.generic.storage.etcd.connection import Endpoints
from tetrapod.generic.storage.etcd.errors import points_elsewhere, translated
from tetrapod.machinery.failure import Failure

QUEUE: Final = 4096
CREATE_SECONDS: Final = 5.0
ALL_WATCHES: Final = -1


def key_value(kv: pb.KeyValue) -> KeyValue:
    """Convert etcd's message for a key to a `KeyValue`."""
    return KeyValue(kv.key.decode(), kv.value, kv.mod_revision, kv.create_revision, kv.lease)


def _event(event: pb.Event) -> BackendEvent:
    kv = event.kv
    previous = key_value(event.prev_kv) if event.HasField("prev_kv") else None
    if event.type == pb.Event.DELETE:
        return BackendEvent(kv.key.decode(), None, kv.mod_revision, previous, False)
    return BackendEvent(
        kv.key.decode(), kv.value, kv.mod_revision, previous, kv.create_revision == kv.mod_revision, kv.lease
    )


class EtcdWatch:
    """The implementation of `BackendWatch` for one watch on a `Stream`.

    `progress` covers only events that were returned to the reader, not queued ones. `created` is completed when etcd
    has confirmed the watch, or when it has failed.

    Args:
        stream: the stream that delivers its events.
        watch_id: the ID of the watch on that stream.
        from_revision: the revision at which it starts; 0 means from now on.
    """

    def __init__(self, stream: Stream, watch_id: int, from_revision: int) -> None:
        self.id = watch_id
        self.created: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stream = stream
        self._received_revision = max(0, from_revision - 1)
        self._created_at = 0
        self._outdated_answers = 0
        self._queue: deque[WatchBatch] = deque()
        self._error: Failure[Exception] | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def progress(self) -> int:
        if not self._queue:
            return self._received_revision
        first = self._queue[0]
        return (first.events[0].revision if first.events else first.revision) - 1

    def __aiter__(self) -> AsyncIterator[WatchBatch]:
        return self

    async def __anext__(self) -> WatchBatch:
        while not self._queue:
            if self._error is not None:
                raise self._error.error()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._queue.popleft()

    def next_if_ready(self) -> WatchBatch | None:
        return self._queue.popleft() if self._queue else None

    def receive(self, response: pb.WatchResponse) -> None:
        """Process a response of etcd that has this watch's ID: confirmation, events, progress or cancellation."""
        if response.canceled:
            compacted = response.compact_revision
            self.fail(
                Compacted(compacted)
                if compacted
                else Unavailable(f"etcd: watch was cancelled: {response.cancel_reason}")
            )
        elif response.created:
            self._created_at = response.header.revision
            self._outdated_answers = self._stream.outstanding
            if not self._received_revision:
                self._received_revision = response.header.revision
            if not self.created.done():
                self.created.set_result(None)
        elif response.events:
            # While a watch catches up, the revision of the header is ahead of its events, so only the events'
            # revisions count.
            events = [_event(event) for event in response.events]
            self._put(WatchBatch(events, events[-1].revision))
        elif self._stream.reliable:
            self._advance(response.header.revision)

    def progress_of_all(self, revision: int) -> None:
        """Process the answer to a progress request, which covers all watches of the stream up to `revision`.

        An answer to a request from before this watch existed is ignored: it does not cover past events that the watch
        has yet to receive.
        """
        if not self.created.done() or self.created.cancelled():
            return
        if self._outdated_answers > 0 and revision <= self._created_at:
            self._outdated_answers -= 1
            return
        self._advance(revision)

    def _advance(self, revision: int) -> None:
        if revision >= self._received_revision:
            self._put(WatchBatch((), revision))

    def _put(self, batch: WatchBatch) -> None:
        self._received_revision = max(self._received_revision, batch.revision)
        self._queue.append(batch)
        if len(self._queue) > QUEUE:
            self._queue.clear()
            self._received_revision = 0  # the reader has to start again, so its progress is unknown
            self.fail(Unavailable("etcd: a watch was not read fast enough"))
        self._wake()

    def fail(self, error: Exception) -> None:
        """End the watch with an error, which the reader gets after the queued batches. Only the first error counts."""
        if self._error is None:
            self._error = Failure(error)
        if not self.created.done():
            self.created.set_result(None)  # the error is raised where the watch is read
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Stream:
    """One gRPC stream and its watches, run by a task that starts at once.

    `watches` are the watches by ID, and `task` is the task, which the owner cancels. `outstanding` is the number of
    unanswered progress requests. `broken` is True once the stream has ended.

    Args:
        endpoints: provides the connection.
    """

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._ids = count(1)
        self._call: Call | None = None
        self._waiting: list[pb.WatchRequest] = []  # requests to send once the stream is open
        self.watches: dict[int, EtcdWatch] = {}
        self.outstanding = 0
        self.broken = False
        self.task = asyncio.create_task(self._run(), name="etcd watch stream")

    def create(self, start: str, end: str, from_revision: int, previous: bool) -> EtcdWatch:
        """Request a watch on this stream and return it at once; `EtcdWatch.created` is its confirmation.

        The caller ends the watch by `cancel`.

        Args:
            start: the first key of the range.
            end: the key after the range.
            from_revision: the first revision to return; 0 means from now on.
            previous: whether events include the previous value.
        """
        watch = EtcdWatch(self, next(self._ids), from_revision)
        self.watches[watch.id] = watch
        create = pb.WatchCreateRequest(
            key=start.encode(),
            range_end=end.encode(),
            start_revision=from_revision,
            progress_notify=self.reliable,
            prev_kv=previous,
            watch_id=watch.id,
        )
        self._send(pb.WatchRequest(create_request=create))
        return watch

    def cancel(self, watch: EtcdWatch) -> None:
        """Remove a watch from the stream and cancel it in etcd. Do nothing if it has been removed."""
        if self.watches.pop(watch.id, None) is not None and not self.broken:
            self._send(pb.WatchRequest(cancel_request=pb.WatchCancelRequest(watch_id=watch.id)))

    @property
    def reliable(self) -> bool:
        """Whether etcd's progress notifications are reliable, and are therefore used.

        Unreliable ones may arrive before events that precede them.
        """
        return self._endpoints.progress_reliable

    def request_progress(self) -> None:
        """Request a progress notification for all watches of the stream. Do nothing if notifications are unreliable."""
        if not self.reliable:
            return
        self.outstanding += 1
        self._send(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))

    def _send(self, request: pb.WatchRequest) -> None:
        if self._call is None:
            self._waiting.append(request)
        else:
            self._call.send(request.SerializeToString())

    async def _run(self) -> None:
        error: Exception = Unavailable("etcd: the watch stream ended")
        try:
            connection = await self._endpoints.connection()
            try:
                # With this header, an etcd member that has no leader rejects watches.
                self._call = await connection.watch((("hasleader", "true"),))
                for request in self._waiting:
                    self._send(request)
                self._waiting.clear()
                async for message in self._call:
                    self._dispatch(pb.WatchResponse.FromString(message))
            except RpcError as failure:
                if points_elsewhere(failure):
                    self._endpoints.leave(connection)
                error = translated(failure)
        except Unavailable as failure:
            error = failure.with_traceback(None)
        finally:
            self.broken = True
            if self._call is not None:
                self._call.cancel()
            for watch in list(self.watches.values()):
                watch.fail(error)

    def _dispatch(self, response: pb.WatchResponse) -> None:
        if response.watch_id == ALL_WATCHES and not response.canceled:
            if not self.reliable:
                return
            self.outstanding = max(0, self.outstanding - 1)
            for watch in self.watches.values():
                watch.progress_of_all(response.header.revision)
        elif (concerned := self.watches.get(response.watch_id)) is not None:
            concerned.receive(response)


class WatchStream:
    """Opens watches on a gRPC stream that they share, and opens a new stream when the last one has broken.

    Args:
        endpoints: provides the connections.
    """

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._stream: Stream | None = None

    @contextlib.asynccontextmanager
    async def watch(self, start: str, end: str, from_revision: int, *, previous: bool) -> AsyncIterator[EtcdWatch]:
        """Open a watch on the shared stream for the duration of the context.

        Args:
            start: the first key of the range.
            end: the key after the range.
            from_revision: the first revision to return; 0 means from now on.
            previous: whether events include the previous value.

        Raises:
            Unavailable: etcd did not confirm the watch in time.
        """
        if self._stream is None or self._stream.broken:
            self._stream = Stream(self._endpoints)
        stream = self._stream
        watch = stream.create(start, end, from_revision, previous)
        try:
            try:
                async with asyncio.timeout(CREATE_SECONDS):
                    await watch.created
            except TimeoutError:
                raise Unavailable("etcd: a watch was not created in time") from None
            yield watch
        finally:
            stream.cancel(watch)

    def request_progress(self) -> None:
        """Request a progress notification for all watches. Do nothing if no stream is open."""
        if self._stream is not None and not self._stream.broken:
            self._stream.request_progress()

    async def close(self) -> None:
        """Close the stream, which ends its watches with Unavailable."""
        if self._stream is not None:
            self._stream.task.cancel()
            await asyncio.gather(self._stream.task, return_exceptions=True)
