"""A transport that calls a `Handler` in this process as a given user: without a socket and without copying bodies."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import unquote

from tetrapod.generic.client.metrics import count_request
from tetrapod.generic.client.rest import RestClient, error_from
from tetrapod.generic.http.negotiation.documents import write_status
from tetrapod.generic.http.request import BytesBody, ClientGone, Handler, Request, Response, StreamResponse
from tetrapod.generic.observability.request_metrics import SELF, verb_of
from tetrapod.machinery import requestinfo
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import LOOPBACK, UserInfo

_HIGH_WATER: Final = 1 << 20
_HOST: Final = "in-process"
"""The `host` label of requests that this process sends to itself."""


class InProcessTransport:
    """A `Transport` to a handler in this process.

    Args:
        handler: receives the requests. It is the handler behind the filters, so `user` is neither authenticated nor
            authorized.
        user: the user of the requests.
    """

    def __init__(self, handler: Handler, user: UserInfo = LOOPBACK) -> None:
        self._handler = handler
        self._user = user

    async def _handle(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> Response:
        path, _, query = target.partition("?")
        if body:  # needed by a handler that proxies the request
            headers = {**headers, "content-length": str(len(body))}
        request = Request(
            method,
            unquote(path),
            raw_path=path,
            query_string=query,
            headers=[(k.lower().encode(), v.encode("latin-1")) for k, v in headers.items()],
            body=BytesBody(body),
            user=self._user,
        )
        request.audit_id = str(uuid.uuid4())
        request.info = requestinfo.parse(method, request.path, query)
        if self._user is LOOPBACK:
            SELF.add((verb_of(request), request.info.api_group, request.info.resource, request.info.subresource))
        try:
            return await self._handler(request)
        except StatusError as error:
            return write_status(request, error)

    async def send(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Send a request and return the status code and the body.

        `target` is the path with the query. A StatusError of the handler becomes a Status body.
        """
        began = time.monotonic()
        response = await self._handle(method, target, body, headers)
        if isinstance(response, StreamResponse):
            writer = QueueWriter()
            await response.run(writer)
            response_body = b"".join(writer.chunks)
        else:
            response_body = response.body
        count_request(_HOST, method, str(response.status), began, len(body), len(response_body))
        return response.status, response_body

    async def stream(self, target: str, headers: dict[str, str]) -> AsyncIterator[bytes]:
        """Send a GET and yield the nonempty lines of the response as they are written.

        Raises:
            StatusError: the status is not 200.
        """
        response = await self._handle("GET", target, b"", headers)
        if response.status != 200:
            raise error_from(response.status, response.body)
        if not isinstance(response, StreamResponse):
            for line in filter(None, response.body.split(b"\n")):
                yield line
            return
        writer = QueueWriter()
        task = asyncio.create_task(_run(response, writer))
        incomplete_line = b""
        try:
            async for chunk in writer:
                # a proxied response arrives in arbitrary chunks
                *lines, incomplete_line = (incomplete_line + chunk).split(b"\n")
                for line in lines:
                    if line:
                        yield line
        finally:
            writer.close()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _run(response: StreamResponse, writer: QueueWriter) -> None:
    try:
        await response.run(writer)
    finally:
        writer.finish()


class QueueWriter:
    """A StreamWriter for a reader in this process, which iterates over the written data.

    `drain` waits while more than 1 MiB is unread, but only once the iteration has begun. Without an iteration, the data
    collects in `chunks`.
    """

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self._size = 0
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self._closed = asyncio.Event()
        self._finished = False

    def write(self, data: bytes) -> None:
        self.chunks.append(data)
        self._size += len(data)
        self._more.set()

    def buffered(self) -> int:
        return self._size

    async def drain(self) -> None:
        while self._size > _HIGH_WATER and self._more.is_set() and self._reading:
            self._room.clear()
            await self._room.wait()
        if self.closed:
            raise ClientGone

    _reading = False

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    async def wait_closed(self) -> None:
        await self._closed.wait()

    def close(self) -> None:
        self._closed.set()
        self._room.set()

    def finish(self) -> None:
        """Mark the end of the data. The iteration then ends after the remaining chunks."""
        self._finished = True
        self._more.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._reading = True
        while True:
            await self._more.wait()
            chunks, self.chunks = self.chunks, []
            self._size = 0
            self._room.set()
            if not self._finished:
                self._more.clear()
            if chunks:
                yield b"".join(chunks)
            elif self._finished:
                return


def in_process_client(handler: Handler, user_agent: str, user: UserInfo = LOOPBACK) -> RestClient:
    """Return a client that calls a handler in this process as `user`, without authorization."""
    return RestClient(InProcessTransport(handler, user), user_agent)
