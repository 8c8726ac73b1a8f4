"""Decoding of CBOR to JSON values.

As in upstream, a body is rejected as a whole if it is malformed. An item can be well-formed but not acceptable: a
duplicate member, a number beyond 64 bits, or a text that is not UTF-8. The first such error is reported after the whole
body has been read, so that the kind of the object is known for the error text. Byte strings become strings, tags are
ignored except for times and the tags 21 to 23, whose byte strings become base64 or hexadecimal.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/cbor/internal/modes/decode.go; github.com/fxamacker/cbor, valid.go
and decode.go
"""

from __future__ import annotations

import math
import struct
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from typing import Any, Final

from tetrapod.machinery.cbor.encoding import MAGIC
from tetrapod.machinery.cbor.times import from_epoch, from_text
from tetrapod.machinery.depth import MAX_DEPTH
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.serializer import json as json_serializer
from tetrapod.machinery.serializer.errors import DecodeError

MAX_ITEMS: Final = 1_500_000
"""The most data items of a body, which are as many as a JSON body of 3 MiB can have. Each takes 50 bytes and more."""
TOO_MANY_ITEMS: Final = f"cbor: exceeded max number of data items {MAX_ITEMS}"
_MAX_PAIRS: Final = 2_097_152
_UPSTREAMS_DEPTH: Final = 10_000
UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, PRIMITIVE = range(8)
TYPE_NAMES: Final = (
    "positive integer",
    "negative integer",
    "byte string",
    "UTF-8 text string",
    "array",
    "map",
    "tag",
    "primitives",
)
BREAK: Final = 0xFF
SHORT_ITEMS: Final = bytes(
    0 if head & 31 > 23 or head >> 5 in (ARRAY, MAP, TAG) else 1 + (head & 31 if head >> 5 in (BYTES, TEXT) else 0)
    for head in range(256)
)
"""The bytes of a number, a string or a simple value by its first byte; 0 if that does not say it, and for others."""
_INT64: Final = 1 << 63
NULL: Final = 0xF6
_CONSTANTS: Final = {20: False, 21: True, 22: None}
FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
_SELF_DESCRIBED: Final = int.from_bytes(MAGIC[1:])
_BIGNUMS: Final = (2, 3)
_TIMES: Final = (0, 1)
LATER_ENCODINGS: Final = (21, 22, 23)
BYTE_ERRORS: Final = json_serializer.BYTE_ERRORS
"""Bytes that are not UTF-8 are replaced as in JSON."""


class MalformedError(DecodeError):
    """The error for data that is not one well-formed CBOR data item."""


class InvalidError(DecodeError):
    """The error for well-formed data with an item that is not acceptable. The text is upstream's."""


def decode(data: bytes, most_levels: int = MAX_DEPTH) -> Any:
    """Return the JSON value that CBOR data encodes, with or without the tag of self-described CBOR at its beginning.

    Args:
        data: one data item.
        most_levels: the most levels of arrays, maps and tags.

    Raises:
        MalformedError: the data is empty, malformed, nests too deeply, or has too many items or a bignum.
        InvalidError: the data is well-formed, but JSON or upstream does not allow one of its items.
    """
    if not data:
        raise MalformedError("EOF")
    reader = Reader(data, most_levels)
    try:
        value, end = reader.value(0, 0, 0)
    except IndexError:
        raise MalformedError("unexpected EOF") from None
    if end != len(data):
        raise MalformedError(f"cbor: {len(data) - end} bytes of extraneous data starting at index {end}")
    if reader.error:
        raise InvalidError(reader.error)
    return value


def read_head(data: bytes, at: int) -> tuple[int, int, int | None, int]:
    """Return the major type, the additional information and the argument of an item, and the position after its head.

    The argument is None for an item of indefinite length.

    Raises:
        MalformedError: the head is malformed.
        IndexError: the data ends within the head.
    """
    initial = data[at]
    major, info, at = initial >> 5, initial & 31, at + 1
    if info < 24:
        return major, info, info, at
    if info < 28:
        end = at + (1 << info - 24)
        if end > len(data):
            raise IndexError
        return major, info, int.from_bytes(data[at:end], "big"), end
    if info == 31 and BYTES <= major <= MAP:
        return major, info, None, at
    if info == 31 and major == PRIMITIVE:
        raise MalformedError('cbor: unexpected "break" code')
    raise MalformedError(f"cbor: invalid additional information {info} for type {TYPE_NAMES[major]}")


class Reader:
    """A reader of the items of one document.

    The methods return a value and the position after it. `depth` counts the arrays, maps and tags around an item.
    `later` is the innermost tag 21 to 23 around it (the encoding of byte strings as text), or 0.

    Attributes:
        error: the text of the first error of a well-formed item, after which reading goes on; "" for none.
    """

    def __init__(self, data: bytes, most_levels: int) -> None:
        self._data = data
        self._most_levels = most_levels
        self._items = 0
        self.error = ""

    def value(self, at: int, depth: int, later: int) -> tuple[Any, int]:
        self._items += 1
        if self._items > MAX_ITEMS:
            raise MalformedError(TOO_MANY_ITEMS)
        data = self._data
        info = data[at] & 31
        argument: int | None
        if info < 24:  # most items are short, and a call would take half of their time
            major, argument, at = data[at] >> 5, info, at + 1
            if major == BYTES and not later and (end := at + info) <= len(data):
                return data[at:end].decode("utf-8", BYTE_ERRORS), end
        else:
            major, info, argument, at = read_head(data, at)
        if major in (BYTES, TEXT):
            return self._string(major, argument, at, later)
        if major == MAP:
            return self._map(argument, at, deeper(depth, self._most_levels), later)
        if major == ARRAY:
            return self._array(argument, at, deeper(depth, self._most_levels), later)
        assert argument is not None  # only strings, arrays and maps have an indefinite length
        if major == TAG:
            return self._tagged(argument, at, deeper(depth, self._most_levels), later)
        if major == PRIMITIVE:
            return self._primitive(info, argument, at), at
        number = argument if major == UNSIGNED else -1 - argument
        if argument >= _INT64:
            self._reject(
                f"cbor: cannot unmarshal {TYPE_NAMES[major]} into Go value of type int64 "
                f"({number} overflows Go's int64)"
            )
            return None, at
        return number, at

    def _reject(self, text: str) -> None:
        if not self.error:
            self.error = text

    def _string(self, major: int, size: int | None, at: int, later: int) -> tuple[str | None, int]:
        chunks, at = self._content(major, size, at)
        if major == TEXT:
            try:
                return "".join([chunk.decode() for chunk in chunks]), at
            except UnicodeDecodeError:
                self._reject("cbor: invalid UTF-8 string")
                return None, at
        return _text_of(b"".join(chunks), later), at

    def content(self, major: int, size: int | None, at: int) -> tuple[bytes, int]:
        """Return the bytes of a text or byte string, and the position after it.

        Args:
            major: TEXT or BYTES.
            size: its length, or None for an indefinite one.
            at: the position after its head.
        """
        chunks, at = self._content(major, size, at)
        return b"".join(chunks), at

    def _content(self, major: int, size: int | None, at: int) -> tuple[list[bytes], int]:
        if size is None:
            chunks = []
            for start, end in chunks_of(self._data, major, at):
                chunks.append(self._data[start:end])
                at = end
            return chunks, at + 1
        end = end_of_string(self._data, major, size, at)
        return [self._data[at:end]], end

    def _array(self, size: int | None, at: int, depth: int, later: int) -> tuple[list[Any], int]:
        data, items = self._data, []
        if size is None:
            while data[at] != BREAK:
                item, at = self.value(at, depth, later)
                items.append(item)
            return items, at + 1
        check_size(ARRAY, size)
        for _ in range(size):
            item, at = self.value(at, depth, later)
            items.append(item)
        return items, at

    def _map(self, size: int | None, at: int, depth: int, later: int) -> tuple[dict[str, Any], int]:
        data: bytes = self._data
        obj: dict[str, Any] = {}
        if size is None:
            index = 0
            while data[at] != BREAK:
                at = self._member(obj, index, at, depth, later)
                index += 1
            return obj, at + 1
        check_size(MAP, size)
        for index in range(size):
            at = self._member(obj, index, at, depth, later)
        return obj, at

    def _member(self, obj: dict[str, Any], index: int, at: int, depth: int, later: int) -> int:
        head = self._data[at]
        major = head >> 5
        name, at = self.value(at, depth, later)
        value, at = self.value(at, depth, later)
        if head == NULL:
            name = ""
        if not isinstance(name, str):
            if name is not None:
                self._reject(f"cbor: cannot unmarshal {TYPE_NAMES[major]} into Go value of type string")
        elif name in obj:
            self._reject(f"cbor: found duplicate map key {go_quote(name)} at map element index {index}")
        else:
            obj[name] = value
        return at

    def _tagged(self, tag: int, at: int, depth: int, later: int) -> tuple[Any, int]:
        check_tag(tag)
        if tag in _TIMES:
            return self._time(tag, at, depth)
        if is_self_description(tag, at):
            depth -= 1
        return self.value(at, depth, tag if tag in LATER_ENCODINGS else later)

    def _time(self, tag: int, at: int, depth: int) -> tuple[str | None, int]:
        valid = self._check_time(tag, at)
        value, at = self.value(at, depth, 0)
        if not valid:
            return None, at
        try:
            return None if value is None else from_text(value) if tag == 0 else from_epoch(value), at
        except ValueError as error:
            self._reject(str(error))
            return None, at

    def _check_time(self, tag: int, at: int) -> bool:
        """Return whether a tag may be before the item at a position, and record an error if not."""
        head = self._data[at]
        if tag == 0 and head >> 5 != TEXT:
            self._reject(f"cbor: tag number 0 must be followed by text string, got {TYPE_NAMES[head >> 5]}")
            return False
        if tag == 1 and head >> 5 > NEGATIVE and not 0xF9 <= head <= 0xFB:
            expected = "integer or floating-point number"
            self._reject(f"cbor: tag number 1 must be followed by {expected}, got {TYPE_NAMES[head >> 5]}")
            return False
        return True

    def _primitive(self, info: int, argument: int, at: int) -> bool | float | None:
        if info in FLOATS:
            return float_of(self._data, info, at)
        if info == 24:
            check_simple_value(argument)
        if argument not in _CONSTANTS:
            self._reject(
                "cbor: data item of cbor type primitives is not accepted by protocol: "
                f"simple value {argument} is not recognized"
            )
        return _CONSTANTS.get(argument)


def deeper(depth: int, most_levels: int) -> int:
    """Return the number of levels in an array, map or tag that has `depth` levels around it.

    Raises:
        MalformedError: the item nests too deeply.
    """
    if depth >= most_levels:
        raise MalformedError(f"cbor: exceeded max nested level {_UPSTREAMS_DEPTH}")
    return depth + 1


def chunks_of(data: bytes, major: int, at: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each chunk of a string of indefinite length, which ends a byte after the last one.

    Args:
        data: the document.
        major: TEXT or BYTES.
        at: the position after the head of the string.

    Raises:
        MalformedError: a chunk has another type or an indefinite length.
        IndexError: the data ends within the string.
    """
    while (head := data[at]) != BREAK:
        if head >> 5 != major:
            found, expected = TYPE_NAMES[head >> 5], TYPE_NAMES[major]
            raise MalformedError(f"cbor: wrong element type {found} for indefinite-length {expected}")
        if head & 31 == 31:
            raise MalformedError(f"cbor: indefinite-length {TYPE_NAMES[major]} chunk is not definite-length")
        if head & 31 < 24:  # most chunks can be short, and a call would take half of their time
            start, at = at + 1, at + SHORT_ITEMS[head]
            if at > len(data):
                raise IndexError
        else:
            _, _, size, start = read_head(data, at)
            assert size is not None  # checked above
            at = end_of_string(data, major, size, start)
        yield start, at


def end_of_string(data: bytes, major: int, size: int, at: int) -> int:
    """Return the position after a string, or a chunk of one, whose content begins at a position.

    Raises:
        MalformedError: its length has more than 63 bits.
        IndexError: the data ends within the string.
    """
    if size >= _INT64:
        raise MalformedError(f"cbor: {TYPE_NAMES[major]} length {size} is too large, causing integer overflow")
    if at + size > len(data):
        raise IndexError
    return at + size


def check_size(major: int, size: int) -> None:
    """Check that an array or a map does not have too many items, raising MalformedError if it does."""
    if size >= _INT64:
        raise MalformedError(f"cbor: {TYPE_NAMES[major]} length {size} is too large, it would cause integer overflow")
    if major == MAP and size > _MAX_PAIRS:
        raise MalformedError(f"cbor: exceeded max number of key-value pairs {_MAX_PAIRS} for CBOR map")


def is_self_description(tag: int, at: int) -> bool:
    """Return whether a tag is that of self-described CBOR, which is not a level of the document.

    Args:
        tag: its number.
        at: the position after its head.
    """
    return tag == _SELF_DESCRIBED and at == len(MAGIC)


def check_tag(tag: int) -> None:
    """Check that a tag is accepted, raising MalformedError for bignums."""
    if tag in _BIGNUMS:
        raise MalformedError("cbor: data item of cbor type tag is not accepted by protocol: bignum")


def check_simple_value(value: int) -> None:
    """Check a simple value that is encoded in a byte of its own, raising MalformedError if it must not be."""
    if value < 32:
        raise MalformedError(f"cbor: invalid simple value {value} for type primitives")


def float_of(data: bytes, info: int, at: int) -> float:
    """Return a floating-point number, raising MalformedError if it is infinite or NaN.

    Args:
        data: the document.
        info: the additional information in the head, one of `FLOATS`.
        at: the position after the number.
    """
    form = FLOATS[info]
    number: float = struct.unpack_from(form, data, at - struct.calcsize(form))[0]
    if not math.isfinite(number):
        constant = "NaN" if math.isnan(number) else "infinity"
        raise MalformedError(
            f"cbor: data item of cbor type primitives is not accepted by protocol: floating-point {constant}"
        )
    return number


def _text_of(content: bytes, later: int) -> str:
    """Return a byte string as text: base64url (`later` is 21), base64 (22), hexadecimal (23), or UTF-8 (0: no tag)."""
    if later == 21:
        return urlsafe_b64encode(content).rstrip(b"=").decode()
    if later == 22:
        return b64encode(content).decode()
    if later == 23:
        return content.hex()
    return content.decode("utf-8", BYTE_ERRORS)
