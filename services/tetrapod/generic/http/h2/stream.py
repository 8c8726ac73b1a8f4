"""`Stream`: an exchange on a stream of an HTTP/2 connection.

It accounts for the flow control of both directions: the request body is acknowledged as the handler reads it, and the
response waits until the client's windows have room for it (outgoing.py).
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from tetrapod.generic.http.exchange import Exchange, ServedConnection
from tetrapod.generic.http.h2.outgoing import Outgoing
from tetrapod.generic.http.h2.request_head import RequestHead
from tetrapod.generic.http.h2.response_headers import CONTINUE, encode_response_headers, encode_trailers
from tetrapod.generic.http.h2.states import ANSWERED, CLOSED, HALF_CLOSED, OPEN, StreamState
from tetrapod.generic.http.request import ClientGone, HeaderList, Response
from tetrapod.generic.http2 import frames

STREAM_WINDOW: Final = 256 << 10
"""Bytes of a request body that a client may send before the handler reads. 99 % of the objects in clusters are smaller.

Upstream: resourceBody99Percentile in staging/src/k8s.io/apiserver/pkg/server/secure_serving.go.
"""
_CREDIT: Final = STREAM_WINDOW // 4
"""Bytes of a body that the handler reads before a WINDOW_UPDATE frame permits the client to send as many more."""
LINGER: Final = 0.5
"""Seconds without data after which a request that is answered, but not complete, is cut off. Until then it is read and
dropped: curl 7.88 and httpx do not report a response whose stream is reset before they have sent their request.
"""
MOST_DROPPED: Final = 16 << 20
"""Bytes of such a request that are read."""
_HIGH_WATER: Final = 64 << 10
"""Bytes of a stream that wait before `drain` waits."""


class Session(ServedConnection, Protocol):
    """The parts of an Http2Protocol that its streams use."""

    outgoing: Outgoing
    streams: dict[int, Stream]

    def acknowledge(self, size: int) -> None:
        """Add `size` bytes to the connection's window for request bodies."""
        ...

    def closed(self, stream: Stream) -> None:
        """Remove a stream that has ended from the open streams."""
        ...

    def was_reset(self, stream: Stream) -> None:
        """Record that the server has reset a stream, so that frames for it that are still in flight are ignored."""
        ...

    def drain_connection(self) -> None:
        """Ask the client to open another connection for further requests."""
        ...


class Stream(Exchange):
    """An exchange on an HTTP/2 stream.

    Args:
        protocol: the connection.
        id: the id of the stream.
        head: the request without its body.
        window: the bytes that the client accepts on the stream at first.

    Attributes:
        credit: the bytes that the client may still send.
        body_left: the bytes of the body that have not arrived; negative if the length is unknown.
        window: the bytes that the client accepts.
        pending: the data of the response that waits for the client's windows.
        queued: whether the stream waits in `Outgoing`.
        rejection: the response to a request that no handler gets; None for all other requests.
        stream_state: the state.
    """

    __slots__ = (
        "_dropped",
        "_last",
        "_progress",
        "_room",
        "_stalled",
        "_timer",
        "_trailers",
        "_unacknowledged",
        "body_left",
        "credit",
        "id",
        "pending",
        "queued",
        "rejection",
        "stream_state",
        "window",
    )

    protocol: Session

    def __init__(self, protocol: Session, id: int, head: RequestHead, window: int) -> None:
        super().__init__(head.request, keep_alive=True)
        self.protocol = protocol
        self.id = id
        self.length = head.length
        self.expects_continue = head.expects_continue
        self.rejection = head.rejection
        self.stream_state: StreamState = OPEN
        # The request.
        self.credit = STREAM_WINDOW  # bytes that the client may send
        self.body_left = head.length  # bytes of the body that have not arrived; negative: the length is unknown
        self._unacknowledged = 0  # bytes that have arrived since the last WINDOW_UPDATE
        # The response.
        self.window = window  # bytes that the client accepts
        self.pending: list[memoryview] = []
        self.queued = False  # it waits in `outgoing`
        self._last = False  # the response ends with the pending data
        self._trailers: HeaderList = []
        self._room: asyncio.Event | None = None
        self._stalled = self._progress = False
        # ANSWERED:
        self._timer: asyncio.TimerHandle | None = None
        self._dropped = 0  # bytes of the request that have arrived after the response

    # --- the request body

    def receive(self, data: bytes, size: int) -> None:
        """Append a piece of the request body, or drop it if the response has been sent.

        Args:
            data: the payload of a DATA frame without padding.
            size: the bytes that the frame takes of the flow control windows, including padding.
        """
        self._unacknowledged += size
        if self.stream_state is ANSWERED:
            self._dropped += size
            self._acknowledge()
        elif data:
            self.feed(data)

    def end_of_request(self) -> None:
        """Record that the client has sent everything. If the response has been sent as well, close the stream."""
        if self.stream_state is ANSWERED:
            self._close()
        else:
            self.stream_state = HALF_CLOSED
            self.end_of_body()

    def _pause_reading(self) -> None:
        """Do nothing: the client stops when the window is used up."""

    def _request_more(self) -> None:
        self._acknowledge()

    def _send_continue(self) -> None:
        self.protocol.outgoing.write(frames.frame(frames.HEADERS, frames.END_HEADERS, self.id, CONTINUE))

    def _acknowledge(self) -> None:
        """Widen the client's window by the bytes that have arrived since the last WINDOW_UPDATE of this stream.

        The connection counts them for its own window, too. Do nothing while they are fewer than `_CREDIT`.
        """
        if self._unacknowledged >= _CREDIT:
            self.protocol.outgoing.write(frames.window_update(self.id, self._unacknowledged))
            self.credit += self._unacknowledged
            self._release_window()

    def _release_window(self) -> None:
        size, self._unacknowledged = self._unacknowledged, 0
        self.protocol.acknowledge(size)

    # --- StreamWriter

    def write(self, data: bytes) -> None:
        """Write a piece of a stream, or keep it until the client's windows have room."""
        if self.gone or not data:
            return
        if self._head:
            self._flush_head()
        if self._remaining >= 0:
            self._remaining -= len(data)
        self._write(data)

    def _write(self, data: bytes) -> None:
        outgoing, size = self.protocol.outgoing, len(data)
        if not self.pending and size <= self.window and outgoing.may_send(size):
            self.window -= size
            outgoing.write_data(self.id, 0, data)
        else:
            self.unsent += size
            self.pending.append(memoryview(data))
            outgoing.enqueue(self)

    def buffered(self) -> int:
        """Return the number of bytes that are not yet sent to the client."""
        return self.unsent + self.protocol.outgoing.buffered()

    async def drain(self) -> None:
        """Wait until at most 64 KiB of the response wait for the client's windows.

        Raises:
            ClientGone: the client has closed the connection or reset the stream.
        """
        while self.unsent > _HIGH_WATER and not self.gone:
            if self._room is None:
                self._room = asyncio.Event()
            self._room.clear()
            await self._room.wait()
        if self.gone:
            raise ClientGone

    # --- responses

    async def _send_any(self, response: Response) -> None:
        self._send(response)

    def respond(self, response: Response) -> None:
        """Send `response` for a request that is rejected before a handler was started."""
        self._send(response)

    def _send(self, response: Response) -> bytes:
        """Send a response of any size, without copying its body. Returns b""."""
        status, body = response.status, response.body
        empty = status < 200 or status in (204, 304)
        length = -1 if empty else len(body)
        for name, _ in response.headers:
            if name == b"content-length":
                length = -1
            elif name == b"connection":
                self.keep_alive = False
        block = encode_response_headers(status, self.protocol.state.date, response.headers, length)
        outgoing = self.protocol.outgoing
        held = len(self.protocol.streams) == 1 and outgoing.hold()
        if self.head_only or empty or not body:
            self._write_headers(block, frames.END_STREAM)
            self.sent_everything()
        else:
            self._write_headers(block, 0)
            self._send_body(body)
        if held:
            outgoing.flush()
        return b""

    def _send_body(self, body: bytes) -> None:
        outgoing, size = self.protocol.outgoing, len(body)
        self.done = True
        if size <= self.window and outgoing.may_send(size):
            self.window -= size
            outgoing.write_data(self.id, frames.END_STREAM, body)
            self.sent_everything()
        else:
            self._last = True
            self._write(body)

    def _write_headers(self, block: bytes, flags: int) -> None:
        """Write the frames of an encoded header block.

        Args:
            block: the header block.
            flags: END_STREAM if nothing follows on the stream, else 0.
        """
        outgoing = self.protocol.outgoing
        outgoing.write(frames.header_frames(block, flags, self.id, outgoing.largest_frame))

    def _start_stream(self, response: Response) -> None:
        for name, value in response.headers:
            if name == b"content-length":
                self._remaining = int(value)
            elif name == b"connection":
                self.keep_alive = False
        self._head = encode_response_headers(response.status, self.protocol.state.date, response.headers, -1)

    def _write_head(self, head: bytes) -> None:
        self._write_headers(head, 0)

    def _end_stream(self, trailers: HeaderList) -> None:
        self.done = True
        self.streaming = False
        if self.pending:
            self._last, self._trailers = True, trailers
        elif self._head and not trailers:
            head, self._head = self._head, b""
            self._write_headers(head, frames.END_STREAM)
            self.sent_everything()
        else:
            self._flush_head()
            self._write_end(trailers)

    def _write_end(self, trailers: HeaderList) -> None:
        if trailers:
            self._write_headers(encode_trailers(trailers), frames.END_STREAM)
        else:
            self.protocol.outgoing.write(frames.frame(frames.DATA, frames.END_STREAM, self.id))
        self.sent_everything()

    def abort(self) -> None:
        """Reset the stream, so that the client does not mistake a partial response for a complete one."""
        self.done = True
        if not self.gone:
            self.reset(frames.INTERNAL_ERROR)

    # --- a Sender of outgoing.py

    def mark_sent(self, size: int) -> bool:
        self.unsent -= size
        self._progress = True
        if self.pending:
            if self._room is not None and self.unsent <= _HIGH_WATER:
                self._room.set()
            return False
        if self._stalled:
            self._stalled = False
            self.protocol.state.unread.resumed(self)
        if not self._last:
            if self._room is not None:
                self._room.set()
            return False
        if self._trailers:
            self._write_end(self._trailers)
            return False
        self.sent_everything()
        return True

    def blocked(self, now: float) -> None:
        if self.pending and (self._progress or not self._stalled):
            self._stalled, self._progress = True, False
            self.protocol.state.unread.stalled(self, now)

    # --- a LimitedConnection of unread_responses.py

    def unread(self) -> int:
        """Return the bytes of the response that the client has not read."""
        return self.unsent

    def user(self) -> str:
        """Return the name of the user of the request."""
        return self.request.user.name

    def abort_connection(self) -> None:
        """Reset this stream only, and not the connection, because the client may be reading its other streams."""
        self._stalled = False
        self.reset(frames.ENHANCE_YOUR_CALM)

    # --- the end

    def sent_everything(self) -> None:
        """Close the stream, because the response has been written completely.

        If the client is still sending the request, the stream stays open for LINGER seconds, in which the rest is
        dropped.
        """
        self.done = True
        if not self.keep_alive or self.protocol.state.closing:
            self.protocol.drain_connection()
        if self.stream_state is OPEN:
            self.stream_state = ANSWERED
            self._acknowledge()
            self._chunks.clear()
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._cut_off, 0)
        else:
            self._close()

    def _cut_off(self, dropped: int) -> None:
        """Reset the stream of a client that still sends its request after the response.

        If bytes have arrived since the last call, but fewer than MOST_DROPPED in all, wait LINGER seconds more instead.

        Args:
            dropped: the number of dropped bytes at the last call.
        """
        if dropped < self._dropped < MOST_DROPPED:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._cut_off, self._dropped)
        else:
            self.reset(frames.NO_ERROR)

    def reset(self, code: int) -> None:
        """Send RST_STREAM with this HTTP/2 error code, and end the exchange as if the client had disconnected.

        Do nothing if the stream is closed.
        """
        if self.stream_state is not CLOSED:
            self.protocol.outgoing.write(frames.reset(self.id, code))
            self.protocol.was_reset(self)
            self.disconnected()

    def disconnected(self) -> None:
        """End the exchange, because a side has reset the stream, or because the connection is closed."""
        if self.stream_state is CLOSED:
            return
        self._close()
        if not self.done:
            self.client_gone()
        self.gone = True
        if self._room is not None:
            self._room.set()

    def _close(self) -> None:
        self.stream_state = CLOSED
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.pending.clear()
        self.unsent = 0
        if self._stalled:
            self._stalled = False
            self.protocol.state.unread.resumed(self)
        if self._unacknowledged:
            self._release_window()
        self.protocol.closed(self)
