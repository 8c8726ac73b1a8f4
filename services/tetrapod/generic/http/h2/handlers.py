"""`Handlers`: the handlers of one connection's requests, and the requests that wait for them.

A stream that is reset ends at once, but its handler may go on. Such handlers count too, so a client that resets its
streams cannot have more handlers running than streams open.

Upstream: scheduleHandler in golang.org/x/net/http2, server.go
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from typing import Final

from tetrapod.generic.http.h2.stream import Stream
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.frames import ProtocolError

_WAITING: Final = 4
"""Requests that may wait until handlers of reset streams have ended, as a multiple of the permitted streams."""


class Handlers:
    """The running handlers of one connection, and the streams whose requests wait until another handler has ended.

    Args:
        loop: the event loop of the connection.
        limit: the most handlers that run at a time; as many as the streams that a client may have open.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self._loop = loop
        self._limit = limit
        self._running = 0  # also those of streams that were reset
        self._waiting: deque[Stream] = deque()

    def begin(self, stream: Stream) -> None:
        """Handle the request of a stream, now or when another handler has ended.

        Raises:
            ProtocolError: four times as many requests as `limit` wait already.
        """
        if self._running < self._limit:
            self._start(stream)
        elif len(self._waiting) < _WAITING * self._limit:
            self._waiting.append(stream)
        else:
            raise ProtocolError(frames.ENHANCE_YOUR_CALM, "too many requests whose streams were reset")

    def discard_waiting(self) -> None:
        """Discard the requests that wait for a handler, because the connection is closed."""
        self._waiting.clear()

    def _start(self, stream: Stream) -> None:
        self._running += 1
        task = stream.start(self._loop, _responder(stream.rejection) if stream.rejection is not None else None)
        task.add_done_callback(functools.partial(self._ended, stream))

    def _ended(self, ended: Stream, _: asyncio.Task[None]) -> None:
        ended.task = None
        self._running -= 1
        while self._waiting and self._running < self._limit:
            stream = self._waiting.popleft()
            if not stream.gone:
                self._start(stream)


def _responder(response: Response) -> Handler:
    async def respond(_: Request) -> Response:
        return response

    return respond
