"""Rows of Tables, encoded once for each revision of an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timed_cells import TimedCell


class Row(msgspec.Struct, frozen=True, gc=False):
    """The cells and conditions of a row, encoded except for the cells whose text depends on the time.

    Attributes:
        head: the JSON of the row up to the first of these cells.
        timed: these cells, each with the JSON that follows it.
    """

    head: bytes
    timed: tuple[tuple[TimedCell, bytes], ...]

    @classmethod
    def of(cls, cells: Sequence[Any], conditions: Sequence[Object] | None = None) -> Row:
        """Return the row with these cells and, if there are any, conditions."""
        texts, timed = [b'{"cells":['], []
        for i, cell in enumerate(cells):
            texts[-1] += b"," if i else b""
            if isinstance(cell, TimedCell):
                timed.append(cell)
                texts.append(b"")
            else:
                texts[-1] += orjson.dumps(cell)
        texts[-1] += b'],"conditions":%b' % orjson.dumps(conditions) if conditions else b"]"
        return cls(texts[0], tuple(zip(timed, texts[1:], strict=True)))

    def encoded(self, now: float) -> bytes:
        """Return the JSON of the row up to its member `object`, without a comma at the end.

        Args:
            now: seconds since the epoch.
        """
        encoded = self.head
        for cell, following in self.timed:
            encoded += orjson.dumps(cell.text(now)) + following
        return encoded


class StoredRow(msgspec.Struct, frozen=True, gc=False):
    """The row of a stored object, which its entry keeps.

    Attributes:
        row: the row.
        table: the columns of the row. It is valid for these only.
        version: the `apiVersion` of the object whose cells these are.
        begin: where the metadata begins in the object, encoded in this version.
        end: where the metadata ends.
    """

    row: Row
    table: object
    version: str
    begin: int
    end: int
