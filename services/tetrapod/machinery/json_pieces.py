"""Decoding and encoding of large JSON documents piece by piece, so that other threads can run between the pieces.

A decoder in C holds the interpreter's lock until it has created all objects. For a document of 3 MB that takes a tenth
of a second in the most expensive case, deep nesting. This module cuts such a document into pieces at commas. It adds
the brackets that are open at both ends of a piece, decodes the piece like a document, and adds its members to the
containers that it continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from secrets import token_hex
from typing import Any, Final

import orjson

from tetrapod.machinery.freeing import free_large

LARGE_DOCUMENT: Final = 128 * 1024
"""Bytes below which a document is never cut. orjson takes at most 4 ms for it."""
PIECE: Final = 64 * 1024
"""Bytes of a piece."""
_FEW_CONTAINERS: Final = 50_000
"""Objects and lists up to which a document is not cut: orjson takes 5 ms for them."""
_FEW_COMMAS: Final = 100_000
"""Commas up to which a document is not cut: orjson takes 10 ms for the objects that they separate."""
_LONG_DOCUMENT: Final = 4 << 20
"""Bytes from which on a document is cut even if it has few objects and lists."""
_MAX_DEPTH: Final = 254
"""The most levels of objects and lists, which are those that orjson writes. Bodies may have fewer (depth.py)."""
_PLACEHOLDER: Final = token_hex(16)
"""The key for the member that continues in the next piece. Clients do not know it."""
_MARK: Final = token_hex(16)
"""The last member of the innermost container of a piece."""
_COMMA: Final = re.compile(rb'[^",]*+(?:"[^"]*+"[^",]*+)*+,')
"""Matches up to the first comma outside of strings."""
_BRACKETS: Final = b"[]{}"
_NO_BRACKETS: Final = bytes(set(range(256)) - set(_BRACKETS))
_CLOSERS: Final = bytes.maketrans(b"[{", b"]}")
_BLANK: Final = b" \t\r\n"


class NotInPiecesError(ValueError):
    """The error for a document that is malformed or too deep, or whose duplicate keys hide where a piece continues."""


def loads(data: bytes) -> Any:
    """Decode a document like `orjson.loads`, in pieces if it is large, so that other threads can run in between.

    Raises:
        ValueError: the document is malformed, or cannot be cut (`NotInPiecesError`).
    """
    # Nearly all documents are small. For one of 100 bytes, the two further calls would be a fifth of the time.
    return orjson.loads(data) if len(data) < LARGE_DOCUMENT else loads_with(orjson.loads, data)


def loads_with(load: Callable[[bytes], Any], data: bytes, *, unique: bool = False) -> Any:
    """Decode a document with any decoder, in pieces if it is large.

    Args:
        load: the decoder. Its containers have the methods of `dict` or `list`.
        data: the document.
        unique: whether to reject a key that occurs in two pieces of an object; otherwise the later member replaces the
            earlier one. The decoder decides about duplicates within a piece.

    Raises:
        ValueError: the document is malformed, or cannot be cut (`NotInPiecesError`).
    """
    return _Document(load, data, unique).decode() if needs_pieces(data) else load(data)


def needs_pieces(data: bytes) -> bool:
    """Return whether decoding a document at once would hold the interpreter's lock for long."""
    return len(data) >= LARGE_DOCUMENT and (
        len(data) >= _LONG_DOCUMENT
        or data.count(b",") > _FEW_COMMAS
        or data.count(b"{") + data.count(b"[") > _FEW_CONTAINERS
    )


class _Document:
    """A large document that is decoded piece by piece.

    Args:
        load: the decoder of a piece.
        data: the document.
        unique: whether to reject a key that occurs in two pieces of an object.

    Raises:
        ValueError: raised by `decode`: a piece is malformed, or the document cannot be cut (NotInPiecesError).
    """

    def __init__(self, load: Callable[[bytes], Any], data: bytes, unique: bool) -> None:
        self._load, self._data, self._unique = load, data, unique
        # The same bytes with plain characters for escaped ones: every quotation mark begins or ends a string.
        self._plain = data.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in data else data

    def decode(self) -> Any:
        root: Any = None
        spine: list[Any] = []
        try:
            for start, end, opened, still_open in self._cuts():
                last = end == len(self._data)
                text = self._text(start, end, last=last)
                if start and text.lstrip(_BLANK)[:1] in (b"]", b"}", b""):
                    raise NotInPiecesError("a comma without a value")
                piece = self._load(_prefix(opened) + text + _suffix(still_open))
                if start:
                    self._join(spine, piece)
                else:
                    root = piece
                spine = [] if last else _open_containers(root, still_open)
        except Exception:
            spine.clear()
            parts, root = [root], None
            free_large(parts)
            raise
        return root

    def _cuts(self) -> list[tuple[int, int, bytes, bytes]]:
        """Return the pieces of the document, in order.

        Each is a tuple of its start and end, the opening brackets of the containers that are open at its start, and
        those of the containers that are open at its end. The brackets come from the outermost.

        Raises:
            NotInPiecesError: the brackets are not balanced or nest too deeply, or a string does not end.
        """
        cuts = []
        start, opened = 0, b""
        while start < len(self._data):
            end = self._end(start)
            still_open = _still_open(opened + self._brackets(start, end))
            if (end == len(self._data)) is not (not still_open):
                raise NotInPiecesError("unbalanced brackets")
            cuts.append((start, end, opened, still_open))
            start, opened = end, still_open
        return cuts

    def _end(self, start: int) -> int:
        """Return the end of the piece that begins at `start`: after a comma, or at the end of the document.

        Raises:
            NotInPiecesError: a string does not end.
        """
        end = start + PIECE
        if end >= len(self._data):
            return len(self._data)
        if self._plain.count(b'"', start, end) % 2:
            end = self._plain.find(b'"', end) + 1
            if not end:
                raise NotInPiecesError("a string without an end")
        comma = _COMMA.match(self._plain, end)
        return len(self._data) if comma is None else comma.end()

    def _brackets(self, start: int, end: int) -> bytes:
        return b"".join(self._plain[start:end].split(b'"')[::2]).translate(None, _NO_BRACKETS)

    def _text(self, start: int, end: int, *, last: bool) -> bytes:
        if last:
            return self._data[start:end]
        text = self._data[start : end - 1]
        if text.rstrip(_BLANK)[-1:] in (b"[", b"{", b""):
            raise NotInPiecesError("a comma without a value")
        return text

    def _join(self, spine: list[Any], piece: Any) -> None:
        """Add the members of a piece to the containers that it continues, from the innermost to the root.

        Args:
            spine: the decoded containers that were open at the start of the piece, from the root to the innermost.
            piece: the decoded piece. It repeats these containers, each as first member of the one around it.
        """
        parts = [piece]
        for _ in spine[1:]:
            parts.append(_first(parts[-1]))
        for i, (container, part) in enumerate(zip(spine, parts, strict=True)):
            if i < len(spine) - 1:
                _drop_first(part)
            self._extend(container, part)

    def _extend(self, container: Any, members: Any) -> None:
        if not isinstance(container, dict):
            container.extend(members)
        elif self._unique and not container.keys().isdisjoint(members):
            raise NotInPiecesError("duplicate keys")
        else:
            container.update(members)


def _still_open(brackets: bytes) -> bytes:
    """Return the opening brackets that are not closed.

    Args:
        brackets: the brackets of the document so far, without those within strings.

    Raises:
        NotInPiecesError: a bracket is closed that is not open, or they nest too deeply.
    """
    opened = bytearray()
    for bracket in brackets.replace(b"[]", b"").replace(b"{}", b""):
        if bracket in b"[{":
            opened.append(bracket)
            if len(opened) > _MAX_DEPTH:
                raise NotInPiecesError("exceeded max depth")
        elif not opened or opened.pop() != bracket - 2:  # in ASCII, ] comes two after [, and } two after {
            raise NotInPiecesError("unbalanced brackets")
    return bytes(opened)


def _prefix(opened: bytes) -> bytes:
    outer = [b'{"%b":' % _PLACEHOLDER.encode() if bracket == ord("{") else b"[" for bracket in opened[:-1]]
    return b"".join((*outer, opened[-1:]))


def _suffix(still_open: bytes) -> bytes:
    """Return the text that closes the open brackets at the end of a piece, so that the piece can be decoded by itself.

    Before the brackets it adds a mark as last member of the innermost container, by which `_open_containers` finds that
    container. The text is empty if no brackets are open.

    Args:
        still_open: the opening brackets of the containers that are open at the end of the piece, from the outermost.
    """
    if not still_open:
        return b""
    mark = b',"%b":0' if still_open.endswith(b"{") else b',"%b"'
    return mark % _MARK.encode() + still_open[::-1].translate(_CLOSERS)


def _open_containers(root: Any, still_open: bytes) -> list[Any]:
    """Return the objects and lists that the next piece continues, from the root to the innermost.

    The mark that `_suffix` added is removed from the innermost.

    Args:
        root: the document as decoded so far.
        still_open: the opening brackets of these containers.

    Raises:
        NotInPiecesError: a key occurs twice in an open object, so that the last member to be decoded is not its last
            one.
    """
    spine = [root]
    for _ in still_open[1:]:
        spine.append(_last(spine[-1]))
    innermost = spine[-1]
    if isinstance(innermost, dict):
        if innermost.pop(_MARK, None) is None:
            raise NotInPiecesError("duplicate keys")
    elif not isinstance(innermost, list) or not innermost or not _is_mark(innermost.pop()):
        raise NotInPiecesError("duplicate keys")
    return spine


def _is_mark(member: Any) -> bool:
    return bool(member == _MARK or (isinstance(member, tuple) and member[0] == _MARK))


def _last(container: Any) -> Any:
    if isinstance(container, dict):
        return next(reversed(container.values()), None)
    if not isinstance(container, list) or not container:
        raise NotInPiecesError("duplicate keys")
    return container[-1][1] if isinstance(container[-1], tuple) else container[-1]


def _first(container: Any) -> Any:
    if isinstance(container, dict):
        return next(iter(container.values()))
    return container[0][1] if isinstance(container[0], tuple) else container[0]


def _drop_first(container: Any) -> None:
    del container[next(iter(container)) if isinstance(container, dict) else 0]


_ENCODED_AT_ONCE: Final = 64
"""Members of a container from which on it is encoded in parts of so many."""
_OUTER_LEVELS: Final = 8
"""Levels whose containers are encoded in parts. The lists of pod templates are five levels down."""


def dumps(value: Any) -> bytes:
    """Encode a value like `orjson.dumps`, in parts, so that other threads can run in between.

    For small values this is slower.
    """
    return b"".join(_parts(value, _OUTER_LEVELS))


def _parts(value: Any, levels: int) -> Iterator[bytes]:
    """Yield the JSON text of a value in parts.

    The members of a list or object with few members are themselves encoded in parts. Those of a longer one are encoded
    in groups.

    Args:
        value: the value to encode.
        levels: how many levels of containers are encoded in parts; deeper ones are encoded at once.
    """
    if not value or not levels or not isinstance(value, dict | list):
        yield orjson.dumps(value)
    elif isinstance(value, dict):
        yield from _members(value, levels)
    else:
        yield from _items(value, levels)


def _members(value: dict[str, Any], levels: int) -> Iterator[bytes]:
    separator = b"{"
    if len(value) > _ENCODED_AT_ONCE:
        members = iter(value.items())
        while part := dict(islice(members, _ENCODED_AT_ONCE)):
            yield separator + orjson.dumps(part)[1:-1]
            separator = b","
    else:
        for name, member in value.items():
            yield b"%b%b:" % (separator, orjson.dumps(name))
            yield from _parts(member, levels - 1)
            separator = b","
    yield b"}"


def _items(value: list[Any], levels: int) -> Iterator[bytes]:
    separator = b"["
    if len(value) > _ENCODED_AT_ONCE:
        for start in range(0, len(value), _ENCODED_AT_ONCE):
            yield separator + orjson.dumps(value[start : start + _ENCODED_AT_ONCE])[1:-1]
            separator = b","
    else:
        for item in value:
            yield separator
            yield from _parts(item, levels - 1)
            separator = b","
    yield b"]"
