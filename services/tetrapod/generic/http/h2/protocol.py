"""`Http2Protocol`: one client connection that speaks HTTP/2.

It hands the requests of all streams to the same handler as HTTP/1.1 does, each in a task of its own. session.py
processes the frames.

Upstream: golang.org/x/net/http2, server.go, serverConn.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from tetrapod.generic.http.client_verification import SAME_USER, verification_result
from tetrapod.generic.http.h2.outgoing import WRITE_BUFFER, Outgoing
from tetrapod.generic.http.h2.session import Http2Session
from tetrapod.generic.http.h2.settings import greeting
from tetrapod.generic.http.h2.states import PREFACE, SESSION_CLOSED
from tetrapod.generic.http.limits import MAX_HEAD
from tetrapod.generic.http.loop_monitor import NOTICED
from tetrapod.generic.http.request import Request
from tetrapod.generic.http.server_state import HttpServerState
from tetrapod.generic.http.timeouts import HEAD_TIMEOUT, IDLE_TIMEOUT, LINGER
from tetrapod.generic.http.transports import CLOSED_TRANSPORT
from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.frame_reader import Frame, FrameReader, OversizedBlock
from tetrapod.generic.http2.frames import ProtocolError

_STEP: Final = 0.0005
"""Seconds of a step of the event loop in which frames are processed, as in the fair scheduling of requests.

Measured with a flood of 1,000 streams: the 99th percentile of another user's GETs was 12.5 ms with steps of 5 ms, 3 ms
with 1 ms, and 1.4 to 2.9 ms with 0.5 ms, about as without the flood.
"""


class Http2Protocol(Http2Session, asyncio.Protocol):
    """One client connection, which serves many requests at once.

    Args:
        state: the state of the server.

    Attributes:
        transport: the transport of the connection, or CLOSED_TRANSPORT before and after it.
        incomplete_since: the time of the event loop since which a frame or header block is incomplete; 0 if none is.
    """

    def __init__(self, state: HttpServerState) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(state, loop, Outgoing(loop, CLOSED_TRANSPORT, _ignore))
        self.transport: asyncio.Transport = CLOSED_TRANSPORT
        self.incomplete_since = self.idle_since
        self._reader = FrameReader(MAX_HEAD)
        self._greeted = False  # the client's preface has arrived
        self._backlog: list[bytes] = []  # what arrived while frames are processed in several steps
        self._busy = False

    # --- the transport's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        transport.set_write_buffer_limits(WRITE_BUFFER)
        self.outgoing = Outgoing(self.loop, transport, self.abort_connection)
        self.state.connections.add(self)  # type: ignore[arg-type]
        peer = transport.get_extra_info("peername")
        self.remote = str(peer[0]) if isinstance(peer, tuple) else ""
        ssl_object = transport.get_extra_info("ssl_object")
        self.verification = verification_result(ssl_object) if ssl_object is not None else SAME_USER
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
        self._process(0.0 if self.state.parsing else _STEP)

    def _process(self, longest: float) -> None:
        """Process the frames that have arrived, in short steps so that other clients are served.

        Args:
            longest: seconds after which no further frame is processed in this step. It is 0 while other connections
                wait for their next steps.
        """
        monitor = self.state.monitor
        began = time.perf_counter()
        if began >= monitor.stale:
            monitor.read_cpu_time(began)
        self._busy = False
        try:
            while (frame := self._next_frame()) is not None:
                self._frame(frame)
                self.incomplete_since = 0.0
                if time.perf_counter() - began > longest and (self._backlog or not self._reader.empty):
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
            self.state.parsing.add(self.loop, self._process_rest)
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
            self._process(_STEP)

    def _last_request(self) -> Request:
        if (stream := self.streams.get(self._last)) is not None:
            return stream.request
        request = Request("PRI", "*")
        request.remote = self.remote
        return request

    # --- the end

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
        """Return the bytes of frames that the transport has not sent yet. `Stream.unread` counts pending data."""
        return self.outgoing.buffered()

    def user(self) -> str:
        """Return the name of the user of the newest open request; "" if no request is open."""
        return next((stream.request.user.name for stream in reversed(self.streams.values())), "")

    def abort_connection(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    # --- the server's side

    @property
    def idle(self) -> bool:
        """Whether no stream is open."""
        return not self.streams

    def requests(self) -> list[Request]:
        """Return the requests of the open streams."""
        return [stream.request for stream in self.streams.values()]

    def check_idle(self, now: float) -> None:
        """Close the connection if it had no stream for IDLE_TIMEOUT, or if a frame is incomplete for HEAD_TIMEOUT.

        The server calls this every few seconds.

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
        """Send GOAWAY, end endless streams such as watches, and close the connection once its last stream has ended."""
        self.drain_connection()
        for stream in list(self.streams.values()):
            stream.server_stops()
        self._close_if_drained()


def _ignore() -> None:
    """Do nothing: the `overflow` callback of a connection that is not open yet."""
