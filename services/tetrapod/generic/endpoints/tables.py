"""Tables (rows of cells with column definitions, which kubectl prints) and PartialObjectMetadata.

The entry of a stored object keeps its row, in which only the cells that depend on the time are formatted again.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go, asTable, asPartialObjectMetadata;
rest.NewDefaultTableConvertor
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import msgspec
import orjson

from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.http.negotiation.accept import PARTIAL
from tetrapod.generic.scheduling.offload import LARGE
from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.freeing import use_large
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, bad_request
from tetrapod.machinery.table import DEFAULT_TABLE, TableConvertor
from tetrapod.machinery.table_rows import Row, StoredRow
from tetrapod.machinery.types.descriptions import column_texts

log = logging.getLogger(__name__)


def check_include_object(value: str) -> str:
    """Return the value of the parameter includeObject: "Object", "None" or "Metadata" (also for "").

    Raises:
        StatusError: 400 for any other value.
    """
    if value in ("", "Metadata", "Object", "None"):
        return value or "Metadata"
    text = f"includeObject: Invalid value: \"{value}\": must be 'Metadata', 'Object', 'None', or empty"
    raise bad_request(f"Unable to convert to Table as requested: {text}")


class Tables:
    """The encoder of Tables of one kind.

    Args:
        convertor: the columns and cells; None means Name and Created At.
        version: the version of meta.k8s.io.
        include: the result of `check_include_object`.
    """

    def __init__(self, convertor: TableConvertor | None, version: str, include: str) -> None:
        self._convertor = convertor or DEFAULT_TABLE
        # upstream's default convertor leaves the rows nil
        self._no_rows = b"null" if convertor is None or convertor.null_rows else b"[]"
        self._version = version
        self._include = include
        self._partial_head = b',"object":' + _partial_head(version)

    def row(self, obj: Object, raw: bytes) -> bytes:
        """Return one row as JSON.

        Args:
            obj: the object of which the cells are made.
            raw: the encoded object, which the row includes completely, as PartialObjectMetadata, or not at all.
        """
        return self._joined(self._row(obj), raw, *_metadata_span(raw))

    def _row(self, obj: Object) -> Row:
        """Return the row of an object."""
        conditions = self._convertor.conditions
        return Row.of(self._cells(obj), None if conditions is None else conditions(obj))

    def _joined(self, row: Row, raw: bytes, begin: int, end: int) -> bytes:
        """Return a row as JSON with the object in the requested form.

        Args:
            row: the row.
            raw: the encoded object.
            begin: where its metadata begins in `raw`.
            end: where its metadata ends.
        """
        match self._include:
            case "Metadata":
                return row.encoded(time.time()) + self._partial_head + raw[begin:end] + b"}}"
            case "Object":
                return row.encoded(time.time()) + b',"object":' + raw + b"}"
        return row.encoded(time.time()) + b',"object":null}'

    def of_list(self, entries: Sequence[Entry]) -> Tables:
        """Return an encoder for the rows of these entries.

        It is this encoder, unless cells of the kind depend on all objects of the list.
        """
        if self._convertor.of_list is None:
            return self
        row = self._convertor.of_list([entry.peek() for entry in entries])
        return Tables(replace(self._convertor, row=row, lasting=False), self._version, self._include)

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries in the order of the table's rows.

        It is a new list, sorted by the order that the columns of the kind define, or the same sequence if they define
        none.
        """
        order = self._convertor.order
        return entries if order is None else sorted(entries, key=lambda entry: order(entry.peek()))

    def row_of(self, entry: Entry, conversion: Conversion) -> bytes:
        """Return the row of a stored object as JSON.

        The object is converted to the requested version only if the row includes it completely, or if it is a custom
        resource. The first row of an object of at least `LARGE` bytes parses it, and deallocates it part by part: do
        that in a worker thread.

        Args:
            entry: the stored object.
            conversion: converts it to the requested version.
        """
        raw = conversion.bytes(entry) if self._include == "Object" else conversion.metadata_bytes(entry)
        kept = entry.row
        if kept is None or kept.table is not self._convertor or kept.version != conversion.api_version:
            kept = self._stored_row(entry, conversion)
            if self._convertor.lasting and not conversion.calls_webhook:
                entry.row = kept
        return self._joined(kept.row, raw, kept.begin, kept.end)

    def _stored_row(self, entry: Entry, conversion: Conversion) -> StoredRow:
        custom = conversion.definition.custom
        if entry.size < LARGE:
            row = self._row(conversion.peek(entry) if custom else self._read(entry))
        else:
            row = use_large(partial(conversion.object, entry) if custom else entry.object, self._row)
        span = _metadata_span(conversion.metadata_bytes(entry))
        return StoredRow(row, self._convertor, conversion.api_version, *span)

    def _read(self, entry: Entry) -> Object:
        """Return the fields of a built-in object that its cells need.

        It is the whole object if the kind does not declare them, or if a field has an unexpected type.
        """
        fields = self._convertor.reads
        if fields is None:
            return entry.peek()
        try:
            decoded: Object = msgspec.to_builtins(_decoder_of(fields).decode(entry.raw))
        except msgspec.ValidationError:
            return entry.peek()
        return decoded

    def _cells(self, obj: Object) -> list[Any]:
        try:
            return self._convertor.row(obj)
        except StatusError:
            raise
        except Exception:
            # A bookmark's object is empty, and a stored object may predate our validation, so show at least the name.
            log.debug("no table row for %s", obj.get("metadata", {}).get("name"), exc_info=True)
            name = obj.get("metadata", {}).get("name", "")
            return [name, *([""] * (len(self._convertor.columns) - 1))]

    def table(self, rows: Iterable[bytes], metadata: Mapping[str, Any], *, columns: bool = True) -> bytes:
        """Return a complete Table as JSON, without the final newline.

        Args:
            rows: the encoded rows.
            metadata: the metadata of the list.
            columns: include the column definitions; in a watch only the first Table has them.
        """
        joined = b",".join(rows)
        return b"%b%b}" % (
            self.head(metadata, columns=columns),
            b"[%b]" % joined if joined else self._no_rows,
        )

    def head(self, metadata: Mapping[str, Any], *, columns: bool = True) -> bytes:
        """Return the JSON of a Table up to its rows, which the caller appends.

        Args:
            metadata: the metadata of the list.
            columns: include the column definitions; in a watch only the first Table has them.
        """
        return b'{"kind":"Table","apiVersion":"meta.k8s.io/%b","metadata":%b,"columnDefinitions":%b,"rows":' % (
            self._version.encode(),
            orjson.dumps(metadata),
            self.columns() if columns else b"null",
        )

    def columns(self) -> bytes:
        """Return the column definitions as JSON, with descriptions."""
        texts = column_texts(self._convertor.described)
        return orjson.dumps(
            [
                {
                    "name": c.name,
                    "type": c.type,
                    "format": c.format,
                    "description": c.description or texts.get(c.name, ""),
                    "priority": c.priority,
                }
                for c in self._convertor.columns
            ]
        )


@cache
def _decoder_of(fields: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(fields)


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_decoder: Final = msgspec.json.Decoder(_Metadata)


def metadata_of(raw: bytes) -> bytes:
    """Return the JSON bytes of an encoded object's `metadata`, `{}` if it has none, without parsing the rest.

    Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go, asPartialObjectMetadata.
    """
    return bytes(_decoder.decode(raw).metadata)


def _metadata_span(raw: bytes) -> tuple[int, int]:
    """Return where the JSON of an encoded object's `metadata` begins and ends."""
    metadata = metadata_of(raw)
    begin = raw.index(metadata)  # equal bytes that precede it do as well
    return begin, begin + len(metadata)


def partial_bytes(raw: bytes, version: str) -> bytes:
    """Return the JSON of the PartialObjectMetadata (of meta.k8s.io/`version`) of the encoded object `raw`."""
    return _partial_head(version) + metadata_of(raw) + b"}"


def _partial_head(version: str) -> bytes:
    """Return the JSON of a PartialObjectMetadata up to its metadata."""
    return b'{"kind":"%b","apiVersion":"meta.k8s.io/%b","metadata":' % (PARTIAL.encode(), version.encode())


def partial_of(entry: Entry, conversion: Conversion, version: str) -> bytes:
    """Return the JSON of the PartialObjectMetadata of a stored object, which is then cached in the entry.

    Args:
        entry: the stored object.
        conversion: converts it to the requested version.
        version: the version of meta.k8s.io.
    """
    key = (PARTIAL, version, conversion.metadata_version)
    encoded: bytes | None = entry.representations.get(key)
    if encoded is None:
        encoded = entry.representations[key] = partial_bytes(conversion.metadata_bytes(entry), version)
    return encoded
