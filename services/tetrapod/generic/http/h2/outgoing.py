"""`Outgoing`: the frames that a connection sends, within the windows of flow control and as fast as the client reads.

Frames without flow control are written in the order in which they were made. The data of streams is taken in turns, one
frame from each stream that may send, so that a small response waits for one frame of each large one. All frames of a
step of the event loop are written at once: a TLS record and a system call for many events of many watches.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from tetrapod.generic.http2 import frames

WRITE_BUFFER: Final = 64 << 10
"""Bytes that wait in a transport before writing pauses."""
_BATCH: Final = 128 << 10
"""Bytes that are passed to the transport at once."""
_BATCHES: Final = 8
"""Batches that are written in one step of the event loop."""
MOST_CONTROL_BYTES: Final = 256 << 10
"""Bytes of frames without flow control that may wait for a client that does not read. Go's server permits 10,000
frames.
"""


class Sender(Protocol):
    """A stream that has data to send.

    Attributes:
        id: the id of the stream.
        window: the bytes that the client accepts on the stream; not positive if it accepts none.
        pending: the data to send, in pieces.
        queued: whether the stream is in the queue of its `Outgoing`, which alone sets this.
    """

    id: int
    window: int
    pending: list[memoryview]
    queued: bool

    def mark_sent(self, size: int) -> bool:
        """Record that `size` bytes, which the caller has removed from `pending`, are sent.

        Returns:
            Whether the stream ends with them.
        """
        ...

    def blocked(self, now: float) -> None:
        """Record that the pending data cannot be sent now, because the client does not accept more on the stream.

        The stream then counts as stalled (`UnreadResponses`), and may be reset.

        Args:
            now: the time of the event loop in seconds.
        """
        ...


class Outgoing:
    """The sending half of an HTTP/2 connection: frames that are written soon, and streams that wait for the windows.

    Args:
        loop: the event loop of the connection.
        transport: the transport to write to.
        overflow: called when frames of more than `MOST_CONTROL_BYTES` wait for a client that does not read. They have
            been dropped, and the owner must close the connection.

    Attributes:
        window: the bytes of data that the client accepts on the connection; the owner adds to it.
        largest_frame: the size of the largest frame that the client accepts.
        paused: whether the transport takes no more data; set by the owner.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, overflow: Callable[[], None]
    ) -> None:
        self.window = frames.DEFAULT_WINDOW
        self.largest_frame = frames.DEFAULT_FRAME
        self.paused = False
        self._loop = loop
        self._transport = transport
        self._overflow = overflow
        self._frames: list[bytes | memoryview] = []
        self._size = 0
        self._senders: deque[Sender] = deque()
        self._scheduled = False

    def write(self, frame: bytes) -> None:
        """Write a frame without flow control, at the end of this step of the event loop.

        If more than `MOST_CONTROL_BYTES` wait because the client reads nothing, they are dropped and `overflow` is
        called.
        """
        self._frames.append(frame)
        self._size += len(frame)
        if self.paused:
            if self._size > MOST_CONTROL_BYTES:
                self.discard()
                self._overflow()
        elif not self._scheduled:
            self._schedule()

    def write_data(self, stream: int, flags: int, data: bytes | memoryview) -> None:
        """Write a DATA frame at the end of this step of the event loop, and subtract it from the connection's window.

        `may_send` must have returned True, and the window of the stream must have room, which the caller subtracts.

        Args:
            stream: the id of the stream.
            flags: the flags of the frame, such as END_STREAM.
            data: the payload.
        """
        size = len(data)
        self.window -= size
        self._frames += (frames.head(frames.DATA, flags, stream, size), data)
        self._size += size + frames.HEAD_SIZE
        if not self._scheduled:
            self._schedule()

    def may_send(self, size: int) -> bool:
        """Return whether a frame with `size` bytes of data may be written now.

        It may if it fits into the connection's window and the largest frame, the transport takes data, and no stream
        waits to send. The window of the stream is not checked.
        """
        return (
            size <= self.window
            and size <= self.largest_frame
            and not self.paused
            and not self._senders
            and self._size < _BATCH
        )

    def enqueue(self, sender: Sender) -> None:
        """Send the pending data of a stream as the windows and the transport allow, from this step of the loop on."""
        if sender.queued:
            return
        if sender.window <= 0:
            sender.blocked(self._loop.time())
            return
        sender.queued = True
        self._senders.append(sender)
        if not self._scheduled:
            self._schedule()

    def resume(self) -> None:
        """Continue to send the pending data of streams, because the window of the connection has grown."""
        if self._senders and not self._scheduled:
            self._schedule()

    def buffered(self) -> int:
        """Return the bytes that are written, but not sent by the transport."""
        return self._size + self._transport.get_write_buffer_size()

    def discard(self) -> None:
        """Drop all frames and the queue of streams, because the connection is closed."""
        self._frames.clear()
        self._senders.clear()
        self._size = 0

    def hold(self) -> bool:
        """Let frames wait until the caller calls `flush`, instead of scheduling it.

        Returns:
            Whether the caller must call `flush`. False if it is scheduled already, or the transport is paused.

        Measured: 8 of the 34 µs of a small response are for the additional step of the event loop.
        """
        if self._scheduled or self.paused:
            return False
        self._scheduled = True
        return True

    def _schedule(self) -> None:
        self._scheduled = True
        self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write all frames, and pending data of streams while the transport takes it; nothing if it is paused."""
        self._scheduled = False
        for _ in range(_BATCHES):
            if self.paused:
                break
            self._collect()
            if not self._frames:
                break
            data = b"".join(self._frames)
            self._frames.clear()
            self._size = 0
            self._transport.write(data)
        else:
            if self._senders and not self.paused and self.window > 0:
                self._schedule()
                return
        if self._senders:
            now = self._loop.time()
            for sender in list(self._senders):
                sender.blocked(now)

    def _collect(self) -> None:
        """Convert pending data of the queued streams to DATA frames for the next write, up to `_BATCH` bytes.

        The streams take turns: each adds one frame and then goes to the end of the queue.
        """
        senders = self._senders
        while senders and self.window > 0 and self._size < _BATCH and not self.paused:
            sender = senders.popleft()
            sender.queued = False
            if not sender.pending:
                continue
            piece = sender.pending[0]
            size = min(len(piece), sender.window, self.window, self.largest_frame)
            if size <= 0:
                sender.blocked(self._loop.time())
                continue
            if size == len(piece):
                del sender.pending[0]
            else:
                sender.pending[0] = piece[size:]
            stream = sender.id
            sender.window -= size
            self.window -= size
            self._frames += (b"", piece[:size])
            at = len(self._frames) - 2
            self._size += size + frames.HEAD_SIZE
            last = sender.mark_sent(size)
            self._frames[at] = frames.head(frames.DATA, frames.END_STREAM if last else 0, stream, size)
            if sender.pending:
                if sender.window > 0:
                    sender.queued = True
                    senders.append(sender)
                else:
                    sender.blocked(self._loop.time())
