"""`Message`: a request as bytes, and how the bytes are sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
CBOR: Final = "application/cbor"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or several alike.

    Attributes:
        path: the target, as it is sent.
        segment: bytes in each write to the connection; 0 sends everything at once.
        chunk: bytes in each chunk of a chunked body; 0 sends a Content-Length.
        copies: how many times the request is sent on one connection, without waiting for answers.
        parallel: how many connections send it.
        unread: whether answers are left unread until all requests have been measured.
        trailing: bytes that follow the request, such as frames of an upgraded connection.
    """

    method: str
    path: str
    headers: Headers = ()
    body: bytes | None = None
    media_type: str = JSON
    segment: int = 0
    chunk: int = 0
    copies: int = 1
    parallel: int = 1
    unread: bool = False
    trailing: bytes = b""

    def size(self) -> int:
        """Return the bytes of one copy: path, headers and body."""
        headers = sum(len(name) + len(value) + 4 for name, value in self.headers)
        return (
            len(self.path)
            + len(self.method)
            + len(self.media_type)
            + headers
            + len(self.body or b"")
            + len(self.trailing)
        )

    def encode(self, host: str, token: str) -> bytes:
        """Return the bytes of one copy, with the credential of its user."""
        lines = [f"{self.method} {self.path} HTTP/1.1"]
        names = {name.lower() for name, _ in self.headers}
        if "host" not in names:
            lines.append(f"Host: {host}")
        if token and "authorization" not in names:
            lines.append(f"Authorization: Bearer {token}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        body = self.body or b""
        if self.body is not None:
            lines.append(f"Content-Type: {self.media_type}")
            lines.append("Transfer-Encoding: chunked" if self.chunk else f"Content-Length: {len(body)}")
        if self.chunk:
            body = b"".join(_chunks(body, self.chunk))
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body + self.trailing


def _chunks(body: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(body), size):
        part = body[start : start + size]
        yield b"%x\r\n%b\r\n" % (len(part), part)
    yield b"0\r\n\r\n"
