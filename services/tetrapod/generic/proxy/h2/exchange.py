"""`Http2Exchange`: a request and its response as one stream of an HTTP/2 connection.

Upstream: golang.org/x/net/http2, transport.go, clientStream
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.http2 import frames
from tetrapod.generic.proxy.exchange import HIGH_WATER, MAX_1XX, BackendError, Exchange
from tetrapod.generic.proxy.h2.headers import MalformedResponse, content_length, parse_response, parse_trailers

STREAM_WINDOW: Final = HIGH_WATER
"""Bytes of a response body that the server may send before the client reads: as many as over HTTP/1.1. Go's are 4 MiB,
but hundreds of slow clients share one connection here.
"""
_MIN_WINDOW_UPDATE: Final = STREAM_WINDOW // 2
"""The number of bytes read by the caller after which a WINDOW_UPDATE frame is sent."""
_CODES: Final = {
    frames.NO_ERROR: "NO_ERROR",
    frames.PROTOCOL_ERROR: "PROTOCOL_ERROR",
    frames.INTERNAL_ERROR: "INTERNAL_ERROR",
    frames.FLOW_CONTROL_ERROR: "FLOW_CONTROL_ERROR",
    frames.STREAM_CLOSED: "STREAM_CLOSED",
    frames.REFUSED_STREAM: "REFUSED_STREAM",
    frames.CANCEL: "CANCEL",
    frames.ENHANCE_YOUR_CALM: "ENHANCE_YOUR_CALM",
}


def code_name(code: int) -> str:
    """Return the name of an HTTP/2 error code, as Go writes it."""
    return _CODES.get(code) or f"unknown error code 0x{code:x}"


class Carrier(Protocol):
    """The parts of an HTTP/2 connection that its exchanges use."""

    def write(self, data: bytes) -> None:
        """Send `data`, which consists of complete frames."""
        ...

    def reset(self, stream: Http2Exchange, code: int) -> None:
        """Send a RST_STREAM frame with this HTTP/2 error code for a stream."""
        ...

    def flush(self, stream: Http2Exchange) -> None:
        """Send as much of the pending data of a stream as flow control allows."""
        ...

    def forget(self, stream: Http2Exchange) -> None:
        """Remove a stream that has ended from the connection."""
        ...


class Http2Exchange(Exchange):
    """A request and its response as one stream.

    Args:
        connection: the connection.
        number: the id of the stream.
        window: the bytes that the server accepts on it.
        method: the method of the request.
        all_sent: whether the first frames are the whole request; otherwise `send` and `end_request` follow.

    Attributes:
        id: the id of the stream.
        window: the bytes that the server accepts.
        pending: the pieces of the request body that are not sent yet.
        last_sent: whether the pending data ends the request.
    """

    def __init__(self, connection: Carrier, number: int, window: int, method: str, *, all_sent: bool) -> None:
        super().__init__()
        self.id = number
        self.window = window
        self.pending: deque[memoryview] = deque()
        self.last_sent = all_sent
        self.used = number > 1
        self._connection = connection
        self._is_head = method == "HEAD"
        self._repeatable = all_sent
        self._credit = STREAM_WINDOW  # bytes that the server may still send
        self._unacknowledged = 0  # bytes of the body that have been read, but of which the server does not know
        self._informational = 0
        self._left = -1  # bytes of the body that must still arrive; -1 if the response does not say
        self._room: asyncio.Future[None] | None = None

    # --- the request

    async def send(self, data: bytes) -> None:
        if self.lost:
            return
        self.pending.append(memoryview(data))
        self._connection.flush(self)
        while self.pending and not self.lost:
            self._room = self._loop.create_future()
            await self._room

    def on_sent(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def end_request(self) -> None:
        if not self.lost:
            self.last_sent = True
            self._connection.write(frames.frame(frames.DATA, frames.END_STREAM, self.id))

    def fail_request_body(self, error: Exception) -> None:
        if not self.lost:
            self.end(BackendError(str(error)) if self.status else error, frames.CANCEL)

    # --- the response

    def on_headers(self, fields: HeaderList, *, last: bool) -> None:
        """Handle a header list of the server: of an informational response, of the response, or its trailers.

        Informational responses are ignored. For the response, `status` and `headers` are set. A malformed list ends the
        exchange with an error.

        Args:
            fields: the decoded header list.
            last: whether the stream ends with it.
        """
        try:
            if self.status:
                if not last:
                    raise MalformedResponse("http2: trailers without END_STREAM")
                self.trailers = parse_trailers(fields)
                self._complete()
                return
            status, headers = parse_response(fields)
            if status < 200:
                self._informational += 1
                if last or self._informational > MAX_1XX:
                    raise MalformedResponse("http2: too many 1xx informational responses")
                return
            length = content_length(headers)
        except MalformedResponse as error:
            self._malformed(str(error))
            return
        self.headers, self.status = headers, status
        self._left = -1 if self._is_head or status == 304 else length
        self._head_arrived()
        if last:
            self._complete()

    def on_data(self, data: bytes, size: int, *, last: bool) -> None:
        self._credit -= size
        if self._credit < 0:
            self._malformed("the backend exceeds the window of the stream", frames.FLOW_CONTROL_ERROR)
            return
        if not self.status:
            self._malformed("received DATA before a HEADERS frame")
            return
        if data and self._is_head:
            self._malformed("received DATA on a HEAD request")
            return
        if self._left >= 0:
            self._left -= len(data)
            if self._left < 0:
                self._malformed("http2: server replied with more than declared Content-Length; truncated")
                return
        if data:
            self._add_body(data)
            if self._pieces:
                self._write_pieces()
        self._unacknowledged += size
        if last:
            self._complete()
        elif not self._paused and self._unacknowledged >= _MIN_WINDOW_UPDATE:
            self._acknowledge()

    def on_reset(self, reason: int) -> None:
        """Handle a RST_STREAM frame of the server: end the exchange, with an error unless its response is complete.

        A server sends one after a complete response if it does not read the rest of the request body.
        """
        if reason == frames.REFUSED_STREAM and not self.status:
            self.refused()
            return
        self.end(BackendError(f"stream error: stream ID {self.id}; {code_name(reason)}; received from peer"))

    def refused(self) -> None:
        """End the exchange with a `BackendError`, because the server has not processed the request (REFUSED_STREAM).

        The error allows sending the request again (`unsent`) if the first frames contained the whole request.
        """
        text = f"stream error: stream ID {self.id}; REFUSED_STREAM; received from peer"
        self.end(BackendError(text, no_response=True, unsent=self._repeatable))

    def _malformed(self, text: str, code: int = frames.PROTOCOL_ERROR) -> None:
        self.end(BackendError(f"stream error: stream ID {self.id}; {code_name(code)}; {text}"), code)

    def _complete(self) -> None:
        if self._left > 0:
            self.end(BackendError("unexpected EOF"), frames.PROTOCOL_ERROR)
            return
        self.complete = True
        if self.sender is not None:
            self.sender.cancel()
        if not self.last_sent or self.pending:  # the response did not wait for the whole request
            self._connection.reset(self, frames.NO_ERROR)
        self._leave()
        self._wake()

    def end(self, error: Exception | None, code: int = -1) -> None:
        """End the exchange before its response is complete. Do nothing if it has ended.

        Args:
            error: the error for the caller; None if the caller does not read the response any more.
            code: the error code of the RST_STREAM frame to send; -1 for none.
        """
        if self.lost:
            return
        if code >= 0:
            self._connection.reset(self, code)
        if self.sender is not None:
            self.sender.cancel()
        self._leave()
        if error is not None:
            self._fail(error)

    def close(self) -> None:
        self.end(None, frames.CANCEL)

    def _leave(self) -> None:
        self.lost = True
        self.pending.clear()
        self.on_sent()
        self._connection.forget(self)

    # --- flow control

    def _pause(self) -> None:
        self._paused = True

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            if self._unacknowledged >= _MIN_WINDOW_UPDATE and not self.lost:
                self._acknowledge()

    def _release(self) -> None:
        """Do nothing: an HTTP/2 connection can carry other exchanges while this one is in progress."""

    def _acknowledge(self) -> None:
        self._credit += self._unacknowledged
        self._connection.write(frames.window_update(self.id, self._unacknowledged))
        self._unacknowledged = 0
