"""Exec and attach for WebSocket clients (v5.channel.k8s.io), whose channels become SPDY streams to the kubelet.

Upstream: k8s.io/apiserver/pkg/util/proxy/{streamtranslator,websocket}.go;
k8s.io/client-go/tools/remotecommand/{spdy,v4}.go
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

import orjson

from tetrapod.generic.http.headers import TEXT_TYPE
from tetrapod.generic.http.request import HeaderList, Hijacked, Request, Response, UpgradeResponse
from tetrapod.generic.http.websocket import (
    BINARY,
    CLOSE,
    NORMAL,
    PING,
    PONG,
    TEXT,
    Messages,
    WebSocketError,
    frame,
    handshake_response,
)
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.exchange import BackendError, Exchange
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.spdy import Session
from tetrapod.generic.proxy.streamtunnel import without_websocket
from tetrapod.generic.proxy.throttle import Throttle
from tetrapod.generic.proxy.transformed_ends import PipeEnd, pipe_ends, wait_for_any, wait_for_delivery
from tetrapod.machinery.gvk import Object

PROTOCOL: Final = "v5.channel.k8s.io"
_TRANSLATIONS: Final = Counter(
    "apiserver_stream_translator_requests_total",
    "Total number of requests that were handled by the StreamTranslatorProxy, which processes streaming "
    "RemoteCommand/V5",
    ("code",),
)
_VERSIONS: Final = (b"v4.channel.k8s.io", b"v3.channel.k8s.io", b"v2.channel.k8s.io", b"channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSED = 0, 1, 2, 3, 4, 255
_NAMES: Final = {_ERROR: "error", _STDIN: "stdin", _STDOUT: "stdout", _STDERR: "stderr", _RESIZE: "resize"}
_LARGEST_STATUS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams that the client requests in the query of exec or attach.

    Attributes:
        stdin: whether the client sends input.
        stdout: whether the client receives the output.
        stderr: whether the client receives the errors.
        tty: whether there is a terminal. It can be resized, and its errors are part of the output.
    """

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    def channels(self) -> list[int]:
        """Return the numbers of the channels, in the order in which kubelets expect their streams to be opened."""
        candidates = [
            (True, _ERROR),
            (self.stdin, _STDIN),
            (self.stdout, _STDOUT),
            (self.stderr and not self.tty, _STDERR),
            (self.tty, _RESIZE),
        ]
        return [channel for requested, channel in candidates if requested]

    @property
    def greeting(self) -> int:
        """The channel on which the client receives an empty message when it is connected."""
        return _STDOUT if self.stdout else _STDERR if self.stderr else _ERROR


async def translate(
    pool: BackendPool, endpoint: Endpoint, request: Request, *, target: str, headers: HeaderList, streams: Streams
) -> Response:
    """Return a response that upgrades the client, connects to the kubelet and translates between them.

    An invalid handshake gets a 400. Errors of the kubelet are sent on the error channel, because the client is already
    connected then.

    Args:
        pool: the connections.
        endpoint: the kubelet.
        request: the request of the client.
        target: path and query of the request to the kubelet.
        headers: the headers of the request to the kubelet, from which those of the WebSocket handshake are removed.
        streams: the requested streams.
    """
    try:
        head = handshake_response(request.headers, PROTOCOL)
    except WebSocketError as error:
        _TRANSLATIONS.add(("400",))
        return Response(400, [TEXT_TYPE], f"{error}\n".encode())
    sent = [*without_websocket(headers), *((b"x-stream-protocol-version", version) for version in _VERSIONS)]

    async def run(client: Hijacked) -> None:
        client_end, kubelet_end = pipe_ends()
        client.transport.write(head + frame(BINARY, bytes((streams.greeting,))))
        client.take_over(client_end)
        try:
            connection = await pool.exchange(endpoint, "POST", target, sent, upgrade=b"SPDY/3.1")
        except BackendError as error:
            url = f"https://{endpoint.authority}{target}"
            _send_status(client_end, _internal(f'error sending request: Post "{url}": {error}'))
            return
        if connection.status != 101:
            _send_status(client_end, await _upgrade_error(connection))
            return
        translation = _Translation(client_end, kubelet_end, connection, streams, pool.max_bytes_per_second)
        try:
            _send_status(client_end, await translation.status())
        finally:
            translation.end()

    return UpgradeResponse(run)


def _send_status(client_end: PipeEnd, status: Object) -> None:
    good = status.get("status") == "Success" or status.get("reason") == "NonZeroExitCode"
    _TRANSLATIONS.add(("200" if good else str(status.get("code") or 500),))
    client_end.write(frame(BINARY, bytes((_ERROR,)) + orjson.dumps({"metadata": {}, **status})))
    client_end.write(frame(CLOSE, NORMAL))
    client_end.close()


class _Translation:
    """The translation between a connected client and a connected kubelet. Creating it opens the SPDY streams.

    Args:
        client_end: the protocol of the connection of the client.
        kubelet_end: the protocol of the connection of the kubelet.
        connection: the exchange of the upgrade request with the kubelet.
        streams: the streams of the request.
        rate: the limit of bytes per second of stdin, stdout and stderr, each; 0 for none.
    """

    def __init__(
        self, client_end: PipeEnd, kubelet_end: PipeEnd, connection: Exchange, streams: Streams, rate: int
    ) -> None:
        self._client_end, self._kubelet_end = client_end, kubelet_end
        self._messages = Messages()
        self._session = Session(kubelet_end.write, self._from_kubelet)
        connection.detach(kubelet_end)
        self._stream_of = {channel: self._session.open(streamtype=_NAMES[channel]) for channel in streams.channels()}
        self._channel_of = {stream: channel for channel, stream in self._stream_of.items()}
        self._open = {channel for channel in self._stream_of if channel in (_ERROR, _STDOUT, _STDERR)}
        self._closed: set[int] = set()
        self._error = bytearray()
        self._done = asyncio.Event()
        self._output = {
            channel: Throttle(rate, partial(self._write_to_client, channel), kubelet_end)
            for channel in (_STDOUT, _STDERR)
        }
        self._input = Throttle(rate, self._write_stdin, client_end)
        kubelet_end.receive_with(self._session.feed)
        client_end.receive_with(self._from_client)

    def end(self) -> None:
        """Close both connections, and drop the session, which refers back to this object."""
        self._kubelet_end.close()
        self._client_end.close()
        for throttle in (self._input, *self._output.values()):
            throttle.close()
        del self._session

    async def status(self) -> Object:
        """Wait until the kubelet has ended its streams or a connection has ended, and return the Status for the client.

        All output has been passed to the client's connection then. The Status is that of the kubelet's error stream.
        """
        await wait_for_any(self._done, self._client_end.ended, self._kubelet_end.ended)
        await wait_for_delivery(self._client_end, *self._output.values())
        return _status_of(bytes(self._error))

    def _from_kubelet(self, stream: int, data: bytes, ended: bool) -> None:
        channel = self._channel_of.get(stream)
        if channel in (_STDOUT, _STDERR) and data:
            self._output[channel].send(data)
        elif channel == _ERROR and len(self._error) < _LARGEST_STATUS:
            self._error += data
        if ended and channel is not None:
            self._open.discard(channel)
            if not self._open:
                self._done.set()

    def _write_to_client(self, channel: int, data: bytes) -> None:
        self._client_end.write(frame(BINARY, bytes((channel,)) + data))

    def _write_stdin(self, data: bytes) -> None:
        self._session.send(self._stream_of[_STDIN], data)

    def _from_client(self, data: bytes) -> None:
        try:
            for opcode, payload in self._messages.feed(data):
                self._handle_message(opcode, payload)
        except WebSocketError:
            self._client_end.close()

    def _handle_message(self, opcode: int, payload: bytes) -> None:
        if opcode == PING:
            self._client_end.write(frame(PONG, payload))
        elif opcode == CLOSE:
            self._client_end.write(frame(CLOSE, payload[:2]))
            self._client_end.close()
        elif opcode in (BINARY, TEXT) and payload:
            channel, data = payload[0], payload[1:]
            if channel == _CLOSED and data:
                self._end(data[0])
            elif channel == _STDIN and channel in self._stream_of and channel not in self._closed and data:
                self._input.send(data)
            elif channel == _RESIZE and channel in self._stream_of and data:
                self._session.send(self._stream_of[channel], data)

    def _end(self, channel: int) -> None:
        """Handle the client's message that it closes a channel.

        The end of stdin is sent to the kubelet; other channels are ignored.
        """
        if channel == _STDIN and channel in self._stream_of and channel not in self._closed:
            self._closed.add(channel)
            self._input.then(lambda: self._session.send(self._stream_of[channel], b"", last=True))


async def _upgrade_error(connection: Exchange) -> Object:
    """Return the status for the client if the kubelet did not switch protocols.

    It is the Status in the kubelet's response, without kind and apiVersion, or a 500 with the text of the response.

    Raises:
        BackendError: the response breaks off, or has a body of more than 1 MiB.
    """
    text = (await connection.read(_LARGEST_STATUS)).decode("utf-8", "replace")
    try:
        decoded = orjson.loads(text)
    except orjson.JSONDecodeError:
        decoded = None
    if isinstance(decoded, dict) and decoded.get("kind") == "Status":
        return {key: value for key, value in decoded.items() if key not in ("kind", "apiVersion")}
    return _internal(f"unable to upgrade connection: {text.strip()}")


def _internal(text: str) -> Object:
    message = f"Internal error occurred: {text}"
    return {
        "status": "Failure",
        "message": message,
        "reason": "InternalError",
        "details": {"causes": [{"message": text}]},
        "code": 500,
    }


def _status_of(content: bytes) -> Object:
    """Return the status for the client from the content of the kubelet's error stream, which is empty after success."""
    if not content:
        return {"status": "Success"}
    try:
        status = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        return _internal(f'error stream protocol error: {error} in "{content.decode("utf-8", "replace")}"')
    if status.get("status") == "Success":
        return {"status": "Success"}
    if status.get("reason") != "NonZeroExitCode":
        return _internal(status.get("message", "") or "error stream protocol error: unknown error")
    causes = (status.get("details") or {}).get("causes") or ()
    code = next((cause.get("message", "") for cause in causes if cause.get("reason") == "ExitCode"), None)
    if code is None:
        return _internal("error stream protocol error: no ExitCode cause given")
    return {
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": code}]},
    }
