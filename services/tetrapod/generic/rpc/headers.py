"""HTTP/2 header blocks (RFC 7541).

Requests use literals without indexing, so that the block of a call can be cached. Responses are decoded by hpack. This
client announces a dynamic table of size 0, so equal blocks have equal meaning and are decoded once; there are only as
many as methods and outcomes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import hpack

from tetrapod.generic.rpc.frames import COMPRESSION_ERROR, ProtocolError

LARGEST: Final = 256 * 1024
_POST: Final = 3
_SCHEMES: Final = {"http": 6, "https": 7}
_AUTHORITY: Final = 1
_PATH: Final = 4
_CONTENT_TYPE: Final = 31
_USER_AGENT: Final = 58


def _integer(value: int, bits: int, first: int) -> bytes:
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([first | value])
    out = [first | limit]
    value -= limit
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _string(text: str) -> bytes:
    raw = text.encode("ascii")
    return _integer(len(raw), 7, 0) + raw


def _literal(name: int | str, value: str) -> bytes:
    start = _integer(name, 4, 0) if isinstance(name, int) else b"\0" + _string(name)
    return start + _string(value)


@lru_cache(maxsize=256)
def request_block(
    scheme: str, authority: str, path: str, timeout: float | None, metadata: tuple[tuple[str, str], ...]
) -> bytes:
    """Return the encoded headers of a call. They use no dynamic table, so that the block can be cached.

    Args:
        scheme: `http` or `https`.
        authority: the host and port.
        path: the method, such as `/etcdserverpb.KV/Range`.
        timeout: the deadline that the server is told, in seconds; None for none.
        metadata: further headers, with lower-case names.
    """
    block = _integer(_POST, 7, 0x80) + _integer(_SCHEMES[scheme], 7, 0x80)
    block += _literal(_PATH, path) + _literal(_AUTHORITY, authority)
    block += (
        _literal(_CONTENT_TYPE, "application/grpc") + _literal(_USER_AGENT, "tetrapod") + _literal("te", "trailers")
    )
    if timeout is not None:
        block += _literal("grpc-timeout", f"{max(1, round(timeout * 1000))}m")
    return block + b"".join(_literal(name, value) for name, value in metadata)


class HeaderReader:
    """The decoder of the header blocks of one connection."""

    def __init__(self) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=LARGEST)
        self._decoder.max_allowed_table_size = 0
        self._decoder.header_table_size = 0
        self._known: dict[bytes, dict[str, str]] = {}

    def read(self, block: bytes) -> dict[str, str]:
        """Return the headers in a block by name, the last one of equal names.

        The dictionary is shared: do not modify it.

        Raises:
            ProtocolError: the block is malformed.
        """
        cached = self._known.get(block)
        if cached is not None:
            return cached
        try:
            headers = {_text(name): _text(value) for name, value in self._decoder.decode(block, raw=True)}
        except (hpack.HPACKError, UnicodeDecodeError) as error:
            raise ProtocolError(COMPRESSION_ERROR, f"a header block cannot be read: {error}") from error
        if len(self._known) < 64:
            self._known[block] = headers
        return headers


def _text(raw: bytes | str) -> str:
    return raw if isinstance(raw, str) else raw.decode("utf-8")
