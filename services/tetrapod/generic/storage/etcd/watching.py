"""`EtcdWatch`: a watch on a gRPC stream of its own.

etcd answers a progress request only when all watches of its stream have caught up and have reached their start
revision. If the streams were shared, a watch that begins after the last write would keep all others from learning of
their progress until the next write. kube-apiserver too has a stream for each resource.

A watch whose stream breaks ends with Unavailable, and its owner resumes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
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
    """The implementation of `BackendWatch`. Its task, which runs the stream, starts at once.

    `progress` covers only events that were returned to the reader, not queued ones. `created` is completed when etcd
    has confirmed the watch, or when it has failed.

    Args:
        endpoints: provides the connection.
        start: the first key of the range.
        end: the key after the range.
        from_revision: the first revision to return; 0 means from now on.
        previous: whether events include the previous value.
    """

    def __init__(self, endpoints: Endpoints, start: str, end: str, from_revision: int, *, previous: bool) -> None:
        self.created: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._endpoints = endpoints
        self._call: Call | None = None
        self._received_revision = max(0, from_revision - 1)
        self._queue: deque[WatchBatch] = deque()
        self._error: Failure[Exception] | None = None
        self._waiter: asyncio.Future[None] | None = None
        create = pb.WatchCreateRequest(
            key=start.encode(), range_end=end.encode(), start_revision=from_revision, prev_kv=previous
        )
        self._task = asyncio.create_task(self._run(create), name="etcd watch")

    # --- BackendWatch

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

    def request_progress(self) -> None:
        """Request a progress notification. Do nothing if notifications are unreliable or the stream is not open.

        Unreliable ones may arrive before events that precede them.
        """
        if self._call is not None and self._endpoints.progress_reliable:
            self._call.send(pb.WatchRequest(progress_request=pb.WatchProgressRequest()).SerializeToString())

    # --- the stream

    async def close(self) -> None:
        """End the stream, and with it the watch in etcd."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, create: pb.WatchCreateRequest) -> None:
        error: Exception = Unavailable("etcd: the watch stream ended")
        try:
            connection = await self._endpoints.connection()
            try:
                # With this header, an etcd member that has no leader rejects watches.
                self._call = await connection.watch((("hasleader", "true"),))
                create.progress_notify = self._endpoints.progress_reliable  # known once there is a connection
                self._call.send(pb.WatchRequest(create_request=create).SerializeToString())
                async for message in self._call:
                    self._receive(pb.WatchResponse.FromString(message))
            except RpcError as failure:
                if points_elsewhere(failure):
                    self._endpoints.leave(connection)
                error = translated(failure)
        except Unavailable as failure:
            error = failure.with_traceback(None)
        finally:
            if self._call is not None:
                self._call.cancel()
                self._call = None
            self._fail(error)

    def _receive(self, response: pb.WatchResponse) -> None:
        """Process a response: confirmation, events, progress or cancellation."""
        if response.canceled:
            compacted = response.compact_revision
            self._fail(
                Compacted(compacted)
                if compacted
                else Unavailable(f"etcd: watch was cancelled: {response.cancel_reason}")
            )
        elif response.created:
            if not self._received_revision:
                self._received_revision = response.header.revision
            if not self.created.done():
                self.created.set_result(None)
        elif response.events:
            # While a watch catches up, the revision of the header is ahead of its events, so only the events'
            # revisions count.
            events = [_event(event) for event in response.events]
            self._put(WatchBatch(events, events[-1].revision))
        elif self._endpoints.progress_reliable and response.header.revision >= self._received_revision:
            self._put(WatchBatch((), response.header.revision))

    def _put(self, batch: WatchBatch) -> None:
        self._received_revision = max(self._received_revision, batch.revision)
        self._queue.append(batch)
        if len(self._queue) > QUEUE:
            self._queue.clear()
            self._received_revision = 0  # the reader has to start again, so its progress is unknown
            self._fail(Unavailable("etcd: a watch was not read fast enough"))
        self._wake()

    def _fail(self, error: Exception) -> None:
        """End the watch with an error, which the reader gets after the queued batches. Only the first error counts."""
        if self._error is None:
            self._error = Failure(error)
        if not self.created.done():
            self.created.set_result(None)  # the error is raised where the watch is read
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


@contextlib.asynccontextmanager
async def open_watch(
    endpoints: Endpoints, start: str, end: str, from_revision: int, *, previous: bool
) -> AsyncIterator[EtcdWatch]:
    """Open a watch for the duration of the context.

    Args:
        endpoints: provides the connection.
        start: the first key of the range.
        end: the key after the range.
        from_revision: the first revision to return; 0 means from now on.
        previous: whether events include the previous value.

    Raises:
        Unavailable: etcd did not confirm the watch in time.
    """
    watch = EtcdWatch(endpoints, start, end, from_revision, previous=previous)
    try:
        try:
            async with asyncio.timeout(CREATE_SECONDS):
                await watch.created
        except TimeoutError:
            raise Unavailable("etcd: a watch was not created in time") from None
        yield watch
    finally:
        await watch.close()
