"""Tables (rows of cells with column definitions, which kubectl prints) and PartialObjectMetadata.

Rows are not cached, because cells such as ages depend on the time.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go, asTable, asPartialObjectMetadata;
rest.NewDefaultTableConvertor
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import msgspec
import orjson

from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.http.negotiation.accept import PARTIAL
from tetrapod.generic.scheduling.offload import LARGE
from tetrapod.generic.storage.interface import Entry
from tetrapod.machinery.freeing import use_large
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, bad_request
from tetrapod.machinery.table import DEFAULT_TABLE, TableConvertor
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

    def row(self, obj: Object, raw: bytes) -> bytes:
        """Return one row as JSON.

        Args:
            obj: the object of which the cells are made.
            raw: the encoded object, which the row includes completely, as PartialObjectMetadata, or not at all.
        """
        return self._row(obj, self._object(raw))

    def _row(self, obj: Object, included: bytes) -> bytes:
        """Return one row as JSON, given the object of which the cells are made and the encoded field `object`."""
        row: dict[str, Any] = {"cells": self._cells(obj)}
        if self._convertor.conditions is not None and (conditions := self._convertor.conditions(obj)):
            row["conditions"] = conditions
        return b'%b,"object":%b}' % (orjson.dumps(row)[:-1], included)

    def of_list(self, entries: Sequence[Entry]) -> Tables:
        """Return an encoder for the rows of these entries.

        It is this encoder, unless cells of the kind depend on all objects of the list.
        """
        if self._convertor.of_list is None:
            return self
        row = self._convertor.of_list([entry.peek() for entry in entries])
        return Tables(replace(self._convertor, row=row), self._version, self._include)

    def in_order(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries in the order of the table's rows.

        It is a new list, sorted by the order that the columns of the kind define, or the same sequence if they define
        none.
        """
        order = self._convertor.order
        return entries if order is None else sorted(entries, key=lambda entry: order(entry.peek()))

    def row_of(self, entry: Entry, conversion: Conversion, *, keep: bool = True) -> bytes:
        """Return the row of a stored object as JSON.

        The object is converted to the requested version only if the row includes it completely, or if it is a custom
        resource.

        Args:
            entry: the stored object.
            conversion: converts it to the requested version.
            keep: whether the parsed object and its metadata stay in the entry, for further rows of it. If not, an
                object of at least `LARGE` bytes is parsed for this row alone and deallocated part by part; the caller
                is then a worker thread.
        """
        if keep and self._include == "Metadata":
            included = partial_of(entry, conversion, self._version)
        else:
            whole = self._include == "Object"
            included = self._object(conversion.bytes(entry) if whole else conversion.metadata_bytes(entry))
        if keep or entry.size < LARGE:
            return self._row(conversion.peek(entry) if conversion.definition.custom else self._read(entry), included)
        make = partial(conversion.object, entry) if conversion.definition.custom else entry.object
        return use_large(make, lambda obj: self._row(obj, included))

    def _read(self, entry: Entry) -> Object:
        """Return the fields of a built-in object that its cells need, which are then cached in the entry.

        It is the whole object if the kind does not declare them, or if a field has an unexpected type.
        """
        fields = self._convertor.reads
        if fields is None:
            return entry.peek()
        decoded: Object | None = entry.representations.get(fields)
        if decoded is None:
            try:
                decoded = msgspec.to_builtins(_decoder_of(fields).decode(entry.raw))
            except msgspec.ValidationError:
                decoded = entry.peek()
            entry.representations[fields] = decoded
        return decoded

    def _object(self, raw: bytes) -> bytes:
        match self._include:
            case "Object":
                return raw
            case "None":
                return b"null"
        return partial_bytes(raw, self._version)

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


def partial_bytes(raw: bytes, version: str) -> bytes:
    """Return the JSON of the PartialObjectMetadata (of meta.k8s.io/`version`) of the encoded object `raw`."""
    return b'{"kind":"%b","apiVersion":"meta.k8s.io/%b","metadata":%b}' % (
        PARTIAL.encode(),
        version.encode(),
        metadata_of(raw),
    )


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
