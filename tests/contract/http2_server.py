"""The server of `golden.py` over HTTP/2: all requests of a scenario, watches too, share one connection."""

from __future__ import annotations

import gzip
import time

from contract import golden
from support.http2_connection import Http2Connection, http2_context
from support.http2_streams import Stream


class Http2Server(golden.Server):
    """A server that is spoken to in HTTP/2.

    Requests that HTTP/2 does not have are sent over HTTP/1.1: upgrades, CONNECT with a path, and URLs as targets.
    """

    def __init__(self, url: str, ca: str, tokens: str, timeout: float) -> None:
        super().__init__(url, ca, tokens, timeout)
        self.http2: Http2Connection | None = None
        self._context = http2_context(ca)

    def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None, events: int = 0
    ) -> tuple[int, dict[str, str], bytes | list[bytes]]:
        if method == "CONNECT" or "Upgrade" in headers or "://" in path.partition("?")[0]:
            return super().request(method, path, headers, body, events)
        for last in (False, True):
            if self.http2 is None or not self.http2.usable:
                self.close()
                self.http2 = self._connect()
            try:
                stream = self.http2.request(method, path, headers.items(), body)
                if events and stream.status == 200:
                    return self._watch(self.http2, stream, events)
                payload = self.http2.read(stream)
            except ConnectionError:
                self.close()
                if last:
                    raise
                continue
            received = _header_map(stream)
            if events:
                return stream.status, received, [payload]
            if received.get("content-encoding") == "gzip":
                payload = gzip.decompress(payload)
            return stream.status, received, payload
        raise AssertionError

    def _watch(
        self, connection: Http2Connection, stream: Stream, events: int
    ) -> tuple[int, dict[str, str], list[bytes]]:
        """Read some lines. As in recordings, a watch without as many has no headers if the server has not ended it."""
        deadline = time.monotonic() + min(10.0, self.timeout)
        lines: list[bytes] = []
        while len(lines) < events and (line := connection.read_line(stream, deadline)):
            lines.append(line)
        headers = _header_map(stream) if len(lines) == events or stream.over else {}
        connection.cancel(stream)
        return stream.status, headers, lines

    def _connect(self) -> Http2Connection:
        assert self.url.hostname is not None
        assert self.url.port is not None
        return Http2Connection(self.url.hostname, self.url.port, self._context, 35)

    def close(self) -> None:
        super().close()
        if self.http2 is not None:
            self.http2.close()
            self.http2 = None


def _header_map(stream: Stream) -> dict[str, str]:
    out: dict[str, str] = {}
    for name, value in stream.headers:
        out[name] = f"{out[name]}, {value}" if name in out else value
    return out
