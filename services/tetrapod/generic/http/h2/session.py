"""`Http2Session`: the state of an HTTP/2 connection, and what each received frame does to it.

states.py describes its states, allowance.py which frames a client may send how often. It does no I/O: `Http2Protocol`
(protocol.py) passes frames to it, and it writes to an `Outgoing`.

Upstream: golang.org/x/net/http2, server.go, serverConn.processFrame
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from tetrapod.generic.http.client_verification import VerificationResult
from tetrapod.generic.http.error_responses import status_response
from tetrapod.generic.http.h2.allowance import Allowance
from tetrapod.generic.http.h2.handlers import Handlers
from tetrapod.generic.http.h2.outgoing import Outgoing
from tetrapod.generic.http.h2.request_head import LastHeaders, MalformedRequest, RequestHead, parse_trailers
from tetrapod.generic.http.h2.settings import connection_window
from tetrapod.generic.http.h2.states import (
    DRAINING,
    HALF_CLOSED,
    PREFACE,
    SERVING,
    SESSION_CLOSED,
    SessionState,
)
from tetrapod.generic.http.h2.stream import Stream
from tetrapod.generic.http.limits import MAX_HEAD
from tetrapod.generic.http.request import Request
from tetrapod.generic.http.server_state import HttpServerState
from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.frame_reader import Frame
from tetrapod.generic.http2.frames import ProtocolError
from tetrapod.generic.http2.header_decoding import HeaderDecoder, OversizedHeaders
from tetrapod.generic.http2.peer_settings import PeerSettings
from tetrapod.machinery.status import StatusError

_REMEMBERED_RESETS: Final = 256
"""Streams that the server has reset, whose frames in flight are ignored."""


class Http2Session:
    """The streams of one client connection, and the processing of its frames.

    It is a base class: `Http2Protocol` adds the transport.

    Args:
        state: the state of the server.
        loop: the event loop of the connection.
        outgoing: the first value of the attribute `outgoing`, which is replaced when the connection is made.

    Attributes:
        session_state: the state of the connection.
        remote: the client's address, without its port.
        verification: the result of verifying the client certificate.
        outgoing: queues and writes the frames that are sent.
        streams: the open streams by id.
        idle_since: the time of the event loop since which no request is handled.
    """

    def __init__(self, state: HttpServerState, loop: asyncio.AbstractEventLoop, outgoing: Outgoing) -> None:
        self.state = state
        self.loop = loop
        self.session_state: SessionState = PREFACE
        self.remote = ""
        self.verification = VerificationResult()
        self.outgoing = outgoing
        self.streams: dict[int, Stream] = {}
        self.idle_since = loop.time()
        self._decoder = HeaderDecoder(MAX_HEAD)
        self._last_headers = LastHeaders()
        self._client = PeerSettings()
        self._last = 0  # the last stream of the client
        self._credit = connection_window(state.max_streams)  # bytes of bodies that the client may send
        self._unacknowledged = 0
        self._resets: deque[int] = deque(maxlen=_REMEMBERED_RESETS)
        self._handlers = Handlers(loop, state.max_streams)
        self._allowance = Allowance(self.idle_since)

    @abstractmethod
    def _close(self) -> None:
        """Close the connection after everything that is written, dropping what the client still sends."""

    # --- frames

    def _frame(self, frame: Frame) -> None:
        if self.session_state is PREFACE:
            if frame.kind != frames.SETTINGS or frame.flags & frames.ACK:
                raise ProtocolError(frames.PROTOCOL_ERROR, "the first frame is not SETTINGS")
            self.session_state = SERVING
        process = _KINDS.get(frame.kind)
        if process is None:
            self._spend()
        else:
            process(self, frame)

    def _stream(self, number: int) -> Stream | None:
        """Return the open stream with the id `number`, or None if it is closed, or was ignored after GOAWAY.

        Raises:
            ProtocolError: the client has not opened a stream with this id.
        """
        stream = self.streams.get(number)
        if stream is None and (not number & 1 or (number > self._last and self.session_state is not DRAINING)):
            raise ProtocolError(frames.PROTOCOL_ERROR, "a frame for an idle stream")
        return stream

    def _unexpected(self, frame: Frame) -> None:
        raise ProtocolError(frames.PROTOCOL_ERROR, f"an unexpected frame of type {frame.kind}")

    def _spend(self) -> None:
        """Count a frame that serves no request (see allowance.py).

        Raises:
            ProtocolError: the client has sent more such frames than its `Allowance` permits.
        """
        if not self._allowance.spend(self.loop.time()):
            raise ProtocolError(frames.ENHANCE_YOUR_CALM, "too many frames that bring no request forward")

    def _headers(self, frame: Frame) -> None:
        number, block = frame.stream, frame.payload
        depends = 0
        if frame.flags & frames.PRIORITY_FLAG:
            if len(block) < 5:
                raise ProtocolError(frames.FRAME_SIZE_ERROR, "HEADERS has the wrong size")
            depends = int.from_bytes(block[:4], "big") & 0x7FFFFFFF
            block = block[5:]
        try:
            fields = self._decoder.decode(block)
        except OversizedHeaders:
            self._reject_oversized(number)
            return
        ended = bool(frame.flags & frames.END_STREAM)
        stream = self.streams.get(number)
        if stream is not None:
            self._trailers(stream, fields, ended=ended)
        elif number <= self._last:
            self._spend()
            if number not in self._resets:
                raise ProtocolError(frames.STREAM_CLOSED, "HEADERS on a closed stream")
        elif not number & 1:
            raise ProtocolError(frames.PROTOCOL_ERROR, "a stream of a client has an even number")
        elif self.session_state is not DRAINING:
            self._last = number
            if depends == number or len(self.streams) >= self.state.max_streams:
                self._refuse(number, frames.PROTOCOL_ERROR if depends == number else frames.REFUSED_STREAM)
            else:
                self._request(number, fields, ended=ended)

    def _trailers(self, stream: Stream, fields: list[tuple[bytes, bytes]], *, ended: bool) -> None:
        if stream.stream_state is HALF_CLOSED:
            self.provoked_reset(stream, frames.STREAM_CLOSED)
            return
        try:
            parse_trailers(fields)
        except MalformedRequest:
            ended = False
        if not ended or stream.body_left > 0:
            self.provoked_reset(stream, frames.PROTOCOL_ERROR)
            return
        stream.end_of_request()

    def _request(self, number: int, fields: list[tuple[bytes, bytes]], *, ended: bool) -> None:
        try:
            head = self._last_headers.parse(fields, has_body=not ended)
        except MalformedRequest:
            self._refuse(number, frames.PROTOCOL_ERROR)
            return
        stream = Stream(self, number, head, self._client.window)
        stream.connect_request(self.remote, "https", self.verification)
        self.streams[number] = stream
        if ended:
            stream.end_of_request()
        self._handlers.begin(stream)

    def _refuse(self, number: int, code: int) -> None:
        """Reject the request of the stream `number`, before a `Stream` was created for it, by resetting the stream.

        Args:
            number: the id of the stream.
            code: the HTTP/2 error code.

        Raises:
            ProtocolError: the client has caused more resets than its `Allowance` permits.
        """
        self._spend()
        self._resets.append(number)
        self.outgoing.write(frames.reset(number, code))

    def _data(self, frame: Frame) -> None:
        number, size = frame.stream, len(frame.payload)
        stream = self._stream(number)
        data = frames.unpadded(frame.flags, frame.payload)
        self._credit -= size
        if self._credit < 0:
            raise ProtocolError(frames.FLOW_CONTROL_ERROR, "DATA exceeds the window of the connection")
        if stream is None or stream.stream_state is HALF_CLOSED:
            self.acknowledge(size)
            if number > self._last:
                return
            self._spend()
            if stream is not None:
                self.provoked_reset(stream, frames.STREAM_CLOSED)
            elif number not in self._resets:
                self.outgoing.write(frames.reset(number, frames.STREAM_CLOSED))
            return
        ended = bool(frame.flags & frames.END_STREAM)
        if not data and not ended:
            self._spend()
        stream.credit -= size
        if stream.credit < 0:
            self.acknowledge(size)
            self.provoked_reset(stream, frames.FLOW_CONTROL_ERROR)
            return
        if stream.length >= 0:
            stream.body_left -= len(data)
            if stream.body_left < 0 or (ended and stream.body_left):
                # The handler gets nothing of this frame: a backend would read bytes beyond the length as a request.
                self.acknowledge(size)
                self.provoked_reset(stream, frames.PROTOCOL_ERROR)
                return
        stream.receive(data, size)
        if ended:
            stream.end_of_request()

    def _priority(self, frame: Frame) -> None:
        """Validate a PRIORITY frame, which is then ignored, as RFC 9113 permits.

        Raises:
            ProtocolError: the frame names no stream, or the client has sent more frames that serve no request than its
                `Allowance` permits.
        """
        if not frame.stream:
            raise ProtocolError(frames.PROTOCOL_ERROR, "PRIORITY without a stream")
        self._spend()
        wrong_size = len(frame.payload) != 5
        if wrong_size or int.from_bytes(frame.payload[:4], "big") & 0x7FFFFFFF == frame.stream:
            code = frames.FRAME_SIZE_ERROR if wrong_size else frames.PROTOCOL_ERROR
            if (stream := self.streams.get(frame.stream)) is not None:
                self.provoked_reset(stream, code)
            else:
                self.outgoing.write(frames.reset(frame.stream, code))

    def _reset(self, frame: Frame) -> None:
        frames.read_number(frame.payload)
        self._spend()
        if (stream := self._stream(frame.stream)) is not None:
            stream.disconnected()
        elif frame.stream in self._resets:
            self._resets.remove(frame.stream)  # nothing is in flight behind this frame

    def _settings(self, frame: Frame) -> None:
        if frame.stream:
            raise ProtocolError(frames.PROTOCOL_ERROR, "SETTINGS on a stream")
        if frame.flags & frames.ACK:
            if frame.payload:
                raise ProtocolError(frames.FRAME_SIZE_ERROR, "SETTINGS has the wrong size")
            return
        self._spend()
        former = self._client.window
        self._client.update(frame.payload)
        self.outgoing.largest_frame = self._client.largest_frame
        self.outgoing.write(frames.frame(frames.SETTINGS, frames.ACK, 0))
        if change := self._client.window - former:
            for stream in list(self.streams.values()):
                if stream.window + change > frames.LARGEST_WINDOW:
                    raise ProtocolError(frames.FLOW_CONTROL_ERROR, "a window is too large")
                self._widen(stream, change)

    def _widen(self, stream: Stream, change: int) -> None:
        stream.window += change
        if stream.pending and stream.window > 0:
            self.outgoing.enqueue(stream)

    def _ping(self, frame: Frame) -> None:
        if frame.stream:
            raise ProtocolError(frames.PROTOCOL_ERROR, "PING on a stream")
        if len(frame.payload) != 8:
            raise ProtocolError(frames.FRAME_SIZE_ERROR, "PING has the wrong size")
        self._spend()
        if not frame.flags & frames.ACK:
            self.outgoing.write(frames.frame(frames.PING, frames.ACK, 0, frame.payload))

    def _goaway(self, frame: Frame) -> None:
        """Handle a GOAWAY of the client: close the connection after its open streams have ended.

        Raises:
            ProtocolError: the frame is malformed.
        """
        if frame.stream:
            raise ProtocolError(frames.PROTOCOL_ERROR, "GOAWAY on a stream")
        frames.read_goaway(frame.payload)
        self.drain_connection()
        self._close_if_drained()

    def _window_update(self, frame: Frame) -> None:
        change = frames.read_number(frame.payload) & 0x7FFFFFFF
        number = frame.stream
        if not number:
            self.outgoing.window += change
            if not change or self.outgoing.window > frames.LARGEST_WINDOW:
                code = frames.FLOW_CONTROL_ERROR if change else frames.PROTOCOL_ERROR
                raise ProtocolError(code, "a window of the connection is invalid")
            self.outgoing.resume()
            return
        stream = self._stream(number)
        if stream is None:
            self._spend()
            if not change:
                self.outgoing.write(frames.reset(number, frames.PROTOCOL_ERROR))
        elif not change:
            self.provoked_reset(stream, frames.PROTOCOL_ERROR)
        elif stream.window + change > frames.LARGEST_WINDOW:
            self.provoked_reset(stream, frames.FLOW_CONTROL_ERROR)
        else:
            self._widen(stream, change)

    # --- the streams' side

    def acknowledge(self, size: int) -> None:
        """Let the client send `size` more bytes of request bodies on the connection.

        The WINDOW_UPDATE is sent once the bytes that were added in this way exceed what the client may still send.
        """
        self._unacknowledged += size
        if self._unacknowledged > self._credit and self.session_state is not SESSION_CLOSED:
            self._credit += self._unacknowledged
            self.outgoing.write(frames.window_update(0, self._unacknowledged))
            self._unacknowledged = 0

    def closed(self, stream: Stream) -> None:
        self.streams.pop(stream.id, None)
        if not self.streams:
            self.idle_since = self.loop.time()
            if self.session_state is DRAINING:  # not now: `outgoing` may be making the stream's last frame
                self.loop.call_soon(self._close_if_drained)

    def was_reset(self, stream: Stream) -> None:
        self._resets.append(stream.id)

    def provoked_reset(self, stream: Stream, code: int) -> None:
        """Reset a stream with this HTTP/2 error code, because of a frame that its client has sent, and count the reset.

        Raises:
            ProtocolError: the client has caused more resets than its `Allowance` permits.
        """
        stream.reset(code)
        self._spend()

    def drain_connection(self) -> None:
        """Send GOAWAY, after which the client opens another connection for further requests."""
        if self.session_state is SERVING or self.session_state is PREFACE:
            self.session_state = DRAINING
            self.outgoing.write(frames.goaway(frames.NO_ERROR, self._last))

    def _close_if_drained(self) -> None:
        if self.session_state is DRAINING and not self.streams:
            self._close()

    # --- rejections

    def _reject_oversized(self, number: int) -> None:
        """Answer the request of the stream `number`, whose header list is too long, with 431, and close the connection.

        The connection cannot continue, because the header block was not decoded completely.
        """
        if number > self._last and number & 1 and self.session_state is SERVING:
            self._last = number
            request = Request("", "")
            stream = Stream(self, number, RequestHead(request), self._client.window)
            stream.end_of_request()
            self.streams[number] = stream
            message = f"the request's head is longer than {MAX_HEAD} bytes"
            stream.respond(status_response(StatusError(431, "", message)))
        self._fail(frames.ENHANCE_YOUR_CALM, "a header list is too long")

    def _fail(self, code: int, text: str) -> None:
        """End the connection because the client has violated the protocol. Do nothing if it is closed.

        Args:
            code: the HTTP/2 error code.
            text: the debug data of the GOAWAY.
        """
        if self.session_state is SESSION_CLOSED:
            return
        self.outgoing.write(frames.goaway(code, self._last, text.encode()))
        self._close()


_KINDS: Final[Mapping[int, Callable[[Http2Session, Frame], None]]] = {
    frames.DATA: Http2Session._data,
    frames.HEADERS: Http2Session._headers,
    frames.PRIORITY: Http2Session._priority,
    frames.RST_STREAM: Http2Session._reset,
    frames.SETTINGS: Http2Session._settings,
    frames.PUSH_PROMISE: Http2Session._unexpected,
    frames.PING: Http2Session._ping,
    frames.GOAWAY: Http2Session._goaway,
    frames.WINDOW_UPDATE: Http2Session._window_update,
    frames.CONTINUATION: Http2Session._unexpected,
}
"""The method that processes a frame, by the type of the frame. Frames of other types are ignored."""
