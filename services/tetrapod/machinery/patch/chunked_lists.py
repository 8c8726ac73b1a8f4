"""Lists in pieces, for patches with thousands of insertions and removals in a long list.

Each operation moves only the elements of one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

PIECE: Final = 4096
"""The number of elements of a new piece; a piece with twice as many is split. Among 1,024 to 16,384 this was the
fastest with a million elements.
"""


class Pieces:
    """A list whose elements are stored in several lists (pieces). Indexes are those of the whole list, from 0."""

    def __init__(self, elements: list[Any]) -> None:
        self._pieces = [elements[i : i + PIECE] for i in range(0, len(elements), PIECE)] or [[]]
        self._length = len(elements)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._pieces)

    def __getitem__(self, index: int) -> Any:
        number, offset = self._place(index)
        return self._pieces[number][offset]

    def __setitem__(self, index: int, value: Any) -> None:
        number, offset = self._place(index)
        self._pieces[number][offset] = value

    def __delitem__(self, index: int) -> None:
        number, offset = self._place(index)
        del self._pieces[number][offset]
        self._length -= 1
        if not self._pieces[number] and len(self._pieces) > 1:
            del self._pieces[number]

    def insert(self, index: int, value: Any) -> None:
        """Insert a value before the element at an index, or append it if the index is the length of the list."""
        number, offset = self._place(index)
        piece = self._pieces[number]
        piece.insert(offset, value)
        self._length += 1
        if len(piece) > 2 * PIECE:
            self._pieces[number : number + 1] = [piece[:PIECE], piece[PIECE:]]

    def append(self, value: Any) -> None:
        """Append a value."""
        self.insert(self._length, value)

    def _place(self, index: int) -> tuple[int, int]:
        """Return the number of the piece with the element at an index, and the element's index within that piece.

        If the index is the length of the whole list, return the position after the last element.
        """
        if 2 * index > self._length:
            start = self._length
            for number in range(len(self._pieces) - 1, -1, -1):
                start -= len(self._pieces[number])
                if index >= start:
                    return number, index - start
        for number, piece in enumerate(self._pieces):
            if index < len(piece):
                return number, index
            index -= len(piece)
        return len(self._pieces) - 1, len(self._pieces[-1]) + index
