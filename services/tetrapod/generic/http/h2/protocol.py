"""`Http2Protocol`: one client connection that speaks HTTP/2.

It hands the requests of all streams to the same handler as HTTP/1.1 does, each in a task of its own. states.py
describes its states, allowance.py which frames a client may send how often.

Upstream: golang.org/x/net/http2, server.go, serverConn.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from tetrapod.generic.http.client_verification import VerificationResult, verification_result
from tetrapod.generic.http.error_responses import status_response
from tetrapod.generic.http.h2.allowance import Allowance
from tetrapod.generic.http.h2.frame_reader import Frame, FrameReader, OversizedBlock
from tetrapod.generic.http.h2.handlers import Handlers
from tetrapod.generic.http.h2.outgoing import WRITE_BUFFER, Outgoing
from tetrapod.generic.http.h2.request_head import MalformedRequest, RequestHead, parse_request, parse_trailers
from tetrapod.generic.http.h2.settings import ClientSettings, connection_window, greeting
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
from tetrapod.generic.http.loop_monitor import NOTICED
from tetrapod.generic.http.request import Request
from tetrapod.generic.http.server_state import HttpServerState
from tetrapod.generic.http.transports import CLOSED_TRANSPORT
from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.frames import ProtocolError
from tetrapod.generic.http2.header_decoding import HeaderDecoder, OversizedHeaders
from tetrapod.machinery.status import StatusError

HEAD_TIMEOUT: Final = 32.0
"""Seconds in which the preface, or a frame or header block that has begun, must be complete."""
IDLE_TIMEOUT: Final = 90.0
"""Seconds after which a connection without a stream is closed."""
LINGER: Final = 0.5
"""Seconds in which the data of a client is still read and dropped: a reset would lose the GOAWAY."""
_STEP: Final = 0.005
"""Seconds of a step of the event loop in which frames are processed."""
_REMEMBERED_RESETS: Final = 256
"""Streams that the server has reset, whose frames in flight are ignored."""


class Http2Protocol(asyncio.Protocol):
    """One client connection, which serves many requests at once.

    Args:
        state: the state of the server.

    Attributes:
        session_state: the state of the connection.
        remote: the client's address, without its port.
        verification: the result of verifying the client certificate.
        outgoing: the sending half.
        streams: the open streams by id.
        idle_since: the time of the event loop since which no request is handled.
        incomplete_since: the time of the event loop since which a frame or header block is incomplete; 0 if none is.
    """

    def __init__(self, state: HttpServerState) -> None:
        self.state = state
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport = CLOSED_TRANSPORT
        self.session_state: SessionState = PREFACE
        self.remote = ""
        self.verification = VerificationResult()
        self.outgoing = Outgoing(self.loop, CLOSED_TRANSPORT, _ignore)
        self.streams: dict[int, Stream] = {}
        self.idle_since = self.incomplete_since = self.loop.time()
        self._reader = FrameReader()
        self._decoder = HeaderDecoder(MAX_HEAD)
        self._client = ClientSettings()
        self._greeted = False  # the client's preface has arrived
        self._backlog: list[bytes] = []  # what arrived while frames are processed in several steps
        self._busy = False
        self._last = 0  # the last stream of the client
        self._credit = connection_window(state.max_streams)  # bytes of bodies that the client may send
        self._unacknowledged = 0
        self._resets: deque[int] = deque(maxlen=_REMEMBERED_RESETS)
        self._handlers = Handlers(self.loop, state.max_streams)
        self._allowance = Allowance(self.idle_since)

    # --- the transport's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        transport.set_write_buffer_limits(WRITE_BUFFER)
        self.outgoing = Outgoing(self.loop, transport, self.abort_connection)
        self.state.connections.add(self)  # type: ignore[arg-type]
        peer = transport.get_extra_info("peername")
        self.remote = str(peer[0]) if isinstance(peer, tuple) else ""
        self.verification = verification_result(transport.get_extra_info("ssl_object"))
        self.outgoing.write(greeting(self.state.max_streams))

    def connection_lost(self, exc: Exception | None) -> None:
        self.session_state = SESSION_CLOSED
        self.outgoing.discard()
        self.state.unread.resumed(self)
        self.state.connections.discard(self)
        for stream in list(self.streams.values()):
            stream.disconnected()
        self._handlers.discard_waiting()
        self._backlog.clear()
        self.transport = CLOSED_TRANSPORT
        self.outgoing = Outgoing(self.loop, CLOSED_TRANSPORT, _ignore)

    def pause_writing(self) -> None:
        self.outgoing.paused = True
        self.state.unread.stalled(self, self.loop.time())

    def resume_writing(self) -> None:
        self.outgoing.paused = False
        self.state.unread.resumed(self)
        self.outgoing.flush()

    def data_received(self, data: bytes) -> None:
        if self.session_state is SESSION_CLOSED:
            return
        if self._busy:
            self._backlog.append(data)
            return
        self._reader.feed(data)
        self._process()

    def _process(self) -> None:
        """Process the frames that have arrived, in steps of a few milliseconds so that other clients are served."""
        monitor = self.state.monitor
        began = time.perf_counter()
        if began >= monitor.stale:
            monitor.read_cpu_time(began)
        self._busy = False
        try:
            while (frame := self._next_frame()) is not None:
                self._frame(frame)
                self.incomplete_since = 0.0
                if time.perf_counter() - began > _STEP:
                    self._busy = True
                    break
        except ProtocolError as error:
            self._fail(error.code, str(error))
        except OversizedBlock as error:
            self._reject_oversized(error.stream)
        if (seconds := time.perf_counter() - began) >= NOTICED:
            monitor.step(seconds, self._last_request())
        if self._busy and self.session_state is not SESSION_CLOSED:
            self.transport.pause_reading()
            self.loop.call_soon(self._process_rest)
        elif self._reader.in_head or self.session_state is PREFACE:
            self.incomplete_since = self.incomplete_since or self.loop.time()
        else:
            self.incomplete_since = 0.0

    def _next_frame(self) -> Frame | None:
        if self.session_state is SESSION_CLOSED:
            return None
        if not self._greeted:
            if (preface := self._reader.take(len(frames.PREFACE))) is None:
                return None
            if preface != frames.PREFACE:
                raise ProtocolError(frames.PROTOCOL_ERROR, "the connection preface is invalid")
            self._greeted = True
        frame = self._reader.next()
        if frame is None and self._backlog:
            data = b"".join(self._backlog)
            self._backlog.clear()
            self._reader.feed(data)
            frame = self._reader.next()
        return frame

    def _process_rest(self) -> None:
        self.transport.resume_reading()
        if self.session_state is not SESSION_CLOSED:
            self._process()

    def _last_request(self) -> Request:
        if (stream := self.streams.get(self._last)) is not None:
            return stream.request
        request = Request("PRI", "*")
        request.remote = self.remote
        return request

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
        """Return a stream, or None if it is closed, or was ignored after GOAWAY.

        Raises:
            ProtocolError: the client has not opened the stream.
        """
        stream = self.streams.get(number)
        if stream is None and (not number & 1 or (number > self._last and self.session_state is not DRAINING)):
            raise ProtocolError(frames.PROTOCOL_ERROR, "a frame for an idle stream")
        return stream

    def _unexpected(self, frame: Frame) -> None:
        raise ProtocolError(frames.PROTOCOL_ERROR, f"an unexpected frame of type {frame.kind}")

    def _spend(self) -> None:
        """Count a frame that brings no request forward.

        Raises:
            ProtocolError: the client has sent too many.
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
            head = parse_request(fields, has_body=not ended)
        except MalformedRequest:
            self._refuse(number, frames.PROTOCOL_ERROR)
            return
        request = head.request
        request.remote = self.remote
        request.scheme = "https"
        request.peer_certificates, request.certificate_error = self.verification
        request.cancel_when_gone = request.method in ("GET", "HEAD")
        stream = Stream(self, number, head, self._client.window)
        request.body = stream
        request.disconnected = stream.wait_closed
        self.streams[number] = stream
        if ended:
            stream.end_of_request()
        self._handlers.begin(stream)

    def _refuse(self, number: int, code: int) -> None:
        """Reset a stream that was not opened, with this HTTP/2 error code.

        Raises:
            ProtocolError: the client has caused too many resets.
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
        stream.receive(data, size)
        if stream.length >= 0:
            stream.body_left -= len(data)
            if stream.body_left < 0 or (ended and stream.body_left):
                self.provoked_reset(stream, frames.PROTOCOL_ERROR)
                return
        if ended:
            stream.end_of_request()

    def _priority(self, frame: Frame) -> None:
        """Validate a priority, which is then ignored, as RFC 9113 permits.

        Raises:
            ProtocolError: the frame names no stream, or the client has sent too many.
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
        """Handle a GOAWAY of the client: close the connection after the streams that are open.

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
        """Permit the client to send `size` more bytes on the connection, once it is worth a frame."""
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
        """Reset a stream, with this HTTP/2 error code, because of a frame that its client has sent.

        Raises:
            ProtocolError: the client has caused too many resets.
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

    # --- the end

    def _reject_oversized(self, number: int) -> None:
        """Answer a request with too long a header list with 431, and close the connection.

        Its header compression has lost its state.
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

    def _close(self) -> None:
        """Close the connection after everything that is written, dropping what the client still sends."""
        self.outgoing.flush()
        self.session_state = SESSION_CLOSED
        for stream in list(self.streams.values()):
            stream.disconnected()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER, self._close_transport)

    def _close_transport(self) -> None:
        if self.outgoing.paused:
            self.transport.abort()
        else:
            self.transport.close()

    # --- unread responses (a LimitedConnection of unread_responses.py)

    def unread(self) -> int:
        """Return the bytes that wait in the transport. Streams count what they have not written."""
        return self.outgoing.buffered()

    def user(self) -> str:
        """Return the name of the user whose request is the last."""
        return next((stream.request.user.name for stream in reversed(self.streams.values())), "")

    def abort_connection(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    # --- the server's side

    @property
    def idle(self) -> bool:
        """Whether no request is handled."""
        return not self.streams

    def requests(self) -> list[Request]:
        """Return the requests that are handled."""
        return [stream.request for stream in self.streams.values()]

    def check_idle(self, now: float) -> None:
        """Close the connection if it was idle for too long, or if a frame does not end.

        Args:
            now: the time of the event loop.
        """
        if self.session_state is SESSION_CLOSED:
            return
        if self.incomplete_since and now - self.incomplete_since > HEAD_TIMEOUT:
            self._fail(frames.SETTINGS_TIMEOUT if self.session_state is PREFACE else frames.PROTOCOL_ERROR, "timeout")
        elif not self.streams and now - self.idle_since > IDLE_TIMEOUT:
            self.drain_connection()
            self._close_if_drained()

    def shutdown(self) -> None:
        """Close the connection now, or after the responses that are being written."""
        self.drain_connection()
        for stream in list(self.streams.values()):
            stream.server_stops()
        self._close_if_drained()


def _ignore() -> None:
    """Do nothing: the connection is not open."""


_KINDS: Final[Mapping[int, Callable[[Http2Protocol, Frame], None]]] = {
    frames.DATA: Http2Protocol._data,
    frames.HEADERS: Http2Protocol._headers,
    frames.PRIORITY: Http2Protocol._priority,
    frames.RST_STREAM: Http2Protocol._reset,
    frames.SETTINGS: Http2Protocol._settings,
    frames.PUSH_PROMISE: Http2Protocol._unexpected,
    frames.PING: Http2Protocol._ping,
    frames.GOAWAY: Http2Protocol._goaway,
    frames.WINDOW_UPDATE: Http2Protocol._window_update,
    frames.CONTINUATION: Http2Protocol._unexpected,
}
"""The method that processes a frame, by the type of the frame. Frames of other types are ignored."""
