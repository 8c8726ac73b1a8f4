"""The wire format: varints, tags, and skipping of unknown fields. Error texts are those of gogo's generated code."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.serializer.errors import DecodeError

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
_START_GROUP: Final = 3
END_GROUP: Final = 4
_FIXED32: Final = 5
_MASK: Final = (1 << 64) - 1


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_SMALL: Final = tuple(_varint(number) for number in range(2048))


def varint(number: int) -> bytes:
    """Return a number as a varint. A negative number takes ten bytes, even as an int32."""
    return _SMALL[number] if 0 <= number < 2048 else _varint(number & _MASK)


def tag(number: int, wire_type: int) -> bytes:
    """Return the tag that precedes a field of a number and a wire type."""
    return varint(number << 3 | wire_type)


def delimited(head: bytes, data: bytes) -> bytes:
    """Return a length-delimited field: its tag (`head`), the length of the data, and the data."""
    size = len(data)
    return head + (_SMALL[size] if size < 2048 else _varint(size)) + data


def end_of_input() -> DecodeError:
    """Return the error for data that ends within a value or a message."""
    return DecodeError("unexpected EOF")


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number of the varint at a position, as an unsigned 64-bit integer, and the position after it.

    Raises:
        DecodeError: the number has more than ten bytes.
        IndexError: the data ends within the number.
    """
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    result, shift = byte & 0x7F, 7
    while True:
        position += 1
        byte = data[position]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _MASK, position + 1
        shift += 7
        if shift > 63:
            raise DecodeError("proto: integer overflow")


def read_size(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the positions where the bytes of a length-delimited field begin and end.

    Args:
        data: the bytes that contain the encoded message.
        position: the index in `data` of the field's length, after the tag.
        end: the index in `data` at which the message ends.

    Raises:
        DecodeError: the field extends beyond its message.
        IndexError: the data ends within the length.
    """
    size = data[position]
    if size < 0x80:
        position += 1
    else:
        size, position = read_varint(data, position)
        if size >> 63:
            raise DecodeError("proto: negative length found during unmarshaling")
    stop = position + size
    if stop > end:
        raise end_of_input()
    return position, stop


def skip(data: bytes, position: int, end: int, key: int, message: str | None) -> int:
    """Return the position after an unknown field.

    Args:
        data: the bytes that contain the encoded message.
        position: the index in `data` after the field's tag.
        end: the index in `data` at which the message ends.
        key: the tag: the field number and the wire type.
        message: the name of the message, for errors; None for an entry of a map, whose tags are not checked.

    Raises:
        DecodeError: the field is malformed.
        IndexError: the data ends within the field.
    """
    depth = 0
    while True:
        number, wire_type = key >> 3 & 0xFFFFFFFF, key & 7
        if not depth and wire_type == END_GROUP:
            if message is None:
                raise DecodeError("proto: unexpected end of group")
            raise DecodeError(f"proto: {message}: wiretype end group for non-group")
        if not depth and message is not None and (number == 0 or number >> 31):
            raise DecodeError(f"proto: {message}: illegal tag {number - (number >> 31 << 32)} (wire type {key})")
        if wire_type == VARINT:
            position = read_varint(data, position)[1]
        elif wire_type == BYTES:
            position = read_size(data, position, end)[1]
        elif wire_type in (FIXED64, _FIXED32):
            position += 8 if wire_type == FIXED64 else 4
        elif wire_type == _START_GROUP:
            depth += 1
        elif wire_type == END_GROUP:
            depth -= 1
        else:
            raise DecodeError(f"proto: illegal wireType {wire_type}")
        if position > end:
            raise end_of_input()
        if not depth:
            return position
        key, position = read_varint(data, position)
