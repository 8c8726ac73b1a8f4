"""Requests to the kernel's netfilter over a netlink socket. The kernel answers them at once.

Upstream uses github.com/vishvananda/netlink.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

_NETFILTER: Final = 12
_REQUEST: Final = 0x1
_ACK: Final = 0x4
_DUMP: Final = 0x300
_CREATE: Final = 0x400
_ERROR: Final = 2
_DONE: Final = 3
_NESTED: Final = 0x8000
_TYPE_MASK: Final = 0x3FFF
_HEADER: Final = struct.Struct("=IHHII")
_GENERIC: Final = struct.Struct("=BBH")
_ATTRIBUTE: Final = struct.Struct("=HH")
_BUFFER: Final = 1 << 20


class Netfilter:
    """A socket for requests to a subsystem of netfilter.

    Args:
        subsystem: the number of the subsystem (linux/netfilter/nfnetlink.h).

    Raises:
        OSError: the kernel does not allow it.
    """

    def __init__(self, subsystem: int) -> None:
        self._subsystem = subsystem
        self._sequence = 0
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETFILTER)
        self._socket.bind((0, 0))
        self._socket.settimeout(5)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def execute(self, command: int, attributes: bytes, *, family: int = 0, create: bool = False) -> list[bytes]:
        """Send a request, and return the attributes of each message in the answer.

        Raises:
            OSError: the kernel rejects the request; `errno` says why.
        """
        return list(self._exchange(command, _ACK | (_CREATE if create else 0), attributes, family))

    def dump(self, command: int, *, family: int = 0) -> Iterator[bytes]:
        """Request all objects, and yield the attributes of each.

        Raises:
            OSError: the kernel rejects the request.
        """
        return self._exchange(command, _DUMP, b"", family)

    def _exchange(self, command: int, flags: int, attributes: bytes, family: int) -> Iterator[bytes]:
        self._sequence += 1
        body = _GENERIC.pack(family, 0, 0) + attributes
        kind = self._subsystem << 8 | command
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, self._sequence, 0) + body)
        while True:
            data = self._socket.recv(_BUFFER)
            while data:
                length, answered, _, sequence, _ = _HEADER.unpack_from(data)
                message, data = data[_HEADER.size : length], data[_aligned(length) :]
                if sequence != self._sequence:
                    continue
                if answered == _ERROR:
                    (negative,) = struct.unpack_from("=i", message)
                    if negative:
                        raise OSError(-negative, os.strerror(-negative))
                    return
                if answered == _DONE:
                    return
                yield message[_GENERIC.size :]


def attribute(number: int, value: bytes, *, nested: bool = False) -> bytes:
    """Return an encoded attribute. The value of a nested one consists of attributes."""
    head = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), number | (_NESTED if nested else 0))
    return head + value + b"\0" * (-len(value) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """Return the values of encoded attributes by number."""
    values = {}
    while len(data) >= _ATTRIBUTE.size:
        length, number = _ATTRIBUTE.unpack_from(data)
        if length < _ATTRIBUTE.size:
            break
        values[number & _TYPE_MASK] = data[_ATTRIBUTE.size : length]
        data = data[_aligned(length) :]
    return values


def _aligned(length: int) -> int:
    return (length + 3) & ~3
