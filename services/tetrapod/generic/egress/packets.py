"""The messages of konnectivity's ProxyService: packets, each with one payload.

Upstream: sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client/client.proto
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from tetrapod.machinery.protobuf.wire import BYTES, VARINT, delimited, read_size, read_varint, skip, tag, varint
from tetrapod.machinery.serializer.errors import DecodeError

METHOD: Final = "/ProxyService/Proxy"
_PACKET: Final = "Packet"


class PacketType(IntEnum):
    """The types of packets. Upstream's names of them are label values of metrics."""

    DIAL_REQ = 0
    DIAL_RSP = 1
    CLOSE_REQ = 2
    CLOSE_RSP = 3
    DATA = 4
    DIAL_CLS = 5
    DRAIN = 6


class Packet(NamedTuple):
    """A packet that the proxy server has sent.

    Attributes:
        type: the type as a number. Numbers without a `PacketType` are possible.
        connection: the ID of the connection; 0 if the packet has none.
        dial: the random number of the request to dial; 0 if the packet has none.
        error: the text of an error; "" for success.
        data: the data of the connection.
    """

    type: int
    connection: int = 0
    dial: int = 0
    error: str = ""
    data: bytes = b""

    @property
    def type_name(self) -> str:
        """The name of the type; its number if it is unknown, as in Go."""
        return PacketType(self.type).name if self.type in PacketType._value2member_map_ else str(self.type)


def dial_request(address: str, dial: int) -> bytes:
    """Return the packet that asks the proxy to connect to an address.

    Args:
        address: the address, `host:port`.
        dial: a random number, which the response repeats.
    """
    payload = _text(1, "tcp") + _text(2, address) + _number(3, dial)
    return _packet(PacketType.DIAL_REQ, 2, payload)


def data(connection: int, content: bytes) -> bytes:
    """Return a packet with data of the connection with this ID."""
    return _packet(PacketType.DATA, 4, _number(1, connection) + delimited(tag(3, BYTES), content))


def close_request(connection: int) -> bytes:
    """Return the packet that asks the proxy to close the connection with this ID."""
    return _packet(PacketType.CLOSE_REQ, 5, _number(1, connection))


def dial_close(dial: int) -> bytes:
    """Return the packet that withdraws the request to dial with this random number."""
    return _packet(PacketType.DIAL_CLS, 7, _number(1, dial))


def _packet(type_: PacketType, payload_number: int, payload: bytes) -> bytes:
    return _number(1, type_) + delimited(tag(payload_number, BYTES), payload)


def _number(number: int, value: int) -> bytes:
    return tag(number, VARINT) + varint(value) if value else b""


def _text(number: int, value: str) -> bytes:
    return delimited(tag(number, BYTES), value.encode())


# The fields of the payloads by their numbers: the names of attributes of `Packet`.
_PAYLOADS: Final = {
    3: {1: "error", 2: "connection", 3: "dial"},
    4: {1: "connection", 2: "error", 3: "data"},
    6: {1: "error", 2: "connection"},
    7: {1: "dial"},
}


def decode(message: bytes) -> Packet:
    """Return a packet of the proxy server. Unknown fields are ignored.

    Raises:
        DecodeError: the message is malformed.
    """
    try:
        return _decode(message)
    except (IndexError, UnicodeDecodeError):
        raise DecodeError("unexpected EOF") from None


def _decode(message: bytes) -> Packet:
    packet, position, end = Packet(PacketType.DIAL_REQ), 0, len(message)
    while position < end:
        key, position = read_varint(message, position)
        number, wire_type = key >> 3, key & 7
        if number == 1 and wire_type == VARINT:
            type_, position = read_varint(message, position)
            packet = packet._replace(type=type_)
        elif number in _PAYLOADS and wire_type == BYTES:
            start, position = read_size(message, position, end)
            packet = _payload(packet, message, start, position, _PAYLOADS[number])
        else:
            position = skip(message, position, end, key, _PACKET)
    return packet


def _payload(packet: Packet, message: bytes, position: int, end: int, names: dict[int, str]) -> Packet:
    while position < end:
        key, position = read_varint(message, position)
        name, wire_type = names.get(key >> 3), key & 7
        value: int | bytes | str
        if name in ("connection", "dial") and wire_type == VARINT:
            value, position = read_varint(message, position)
        elif name in ("error", "data") and wire_type == BYTES:
            start, position = read_size(message, position, end)
            value = message[start:position] if name == "data" else message[start:position].decode()
        else:
            position = skip(message, position, end, key, _PACKET)
            continue
        packet = packet._replace(**{name: value})  # type: ignore[arg-type]
    return packet
