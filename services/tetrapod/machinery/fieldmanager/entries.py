"""`metadata.managedFields`: reading and writing its entries, one per manager.

A manager is known by its identifier, the JSON text of what tells two entries apart: name, operation, version (of updates
only) and subresource. Follows k8s.io/apimachinery/pkg/util/managedfields/internal/managedfields.go.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import orjson

from tetrapod.machinery.field import go_quote
from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.fieldset import FieldSet
from tetrapod.machinery.fieldmanager.pathelement import scalar_json
from tetrapod.machinery.gvk import Object

APPLY: Final = "Apply"
UPDATE: Final = "Update"


@dataclass(frozen=True, slots=True)
class Entry:
    """What one manager owns. `identity` is the manager's name, operation and so on, as in the identifier."""

    identity: Object
    fields: FieldSet
    api_version: str
    applied: bool
    time: str | None = None

    def owning(self, fields: FieldSet) -> Entry:
        return replace(self, fields=fields)


Managed = dict[str, Entry]
"""Entries by their managers' identifiers."""


@lru_cache(maxsize=4096)
def identifier(manager: str, operation: str, api_version: str, subresource: str) -> str:
    parts = {"manager": manager, "operation": operation, "apiVersion": api_version, "subresource": subresource}
    return "{" + ",".join(f'"{name}":{scalar_json(value)}' for name, value in parts.items() if value) + "}"


@lru_cache(maxsize=4096)
def identity_of(manager_id: str) -> Object:
    """What an identifier says; not to be changed."""
    identity: Object = orjson.loads(manager_id)
    return identity


def new_entry(manager_id: str, fields: FieldSet, api_version: str, *, applied: bool, time: str | None = None) -> Entry:
    return Entry(identity_of(manager_id), fields, api_version, applied, time)


def is_reset(entries: Any) -> bool:
    """Whether a request asks to forget all ownership: an empty list, or one empty entry."""
    return isinstance(entries, list) and (not entries or (len(entries) == 1 and not any((entries[0] or {}).values())))


def decode(entries: Any) -> Managed:
    """The entries of an object's metadata. Of two entries of one manager the later counts.

    Raises:
        ValueError: an entry is not understood.
    """
    managed: Managed = {}
    for i, entry in enumerate(entries or ()):
        if not isinstance(entry, dict):
            raise ValueError(f"managed fields entry {i} is not an object")
        operation, api_version, fields_type = entry.get("operation"), entry.get("apiVersion"), entry.get("fieldsType")
        if operation not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        if not api_version:
            raise ValueError("apiVersion must not be empty")
        if fields_type != "FieldsV1":
            if not fields_type:
                raise ValueError(f"missing fieldsType in managed fields entry {i}")
            raise ValueError(f"invalid fieldsType {go_quote(str(fields_type))} in managed fields entry {i}")
        applied = operation == APPLY
        manager_id = identifier(entry.get("manager") or "", operation, "" if applied else api_version, entry.get("subresource") or "")
        fields = _decode_fields(entry.get("fieldsV1"))
        managed[manager_id] = new_entry(manager_id, fields, api_version, applied=applied, time=_decode_time(entry.get("time")))
    return managed


def _decode_fields(fields: Any) -> FieldSet:
    """A field set, checked once for each text of it."""
    key = orjson.dumps(fields)
    known = _decoded.get(key)
    if known is None:
        if len(_decoded) >= _DECODED_LIMIT:
            _decoded.clear()
        known = _decoded[key] = fieldset.decode(fields)
    return known


_DECODED_LIMIT: Final = 2048
_decoded: dict[bytes, FieldSet] = {}


def encode(managed: Managed) -> list[Object]:
    """The entries as they stand in an object's metadata."""
    return [_encode_entry(entry) for entry in sorted(managed.values(), key=_entry_order)]


def _encode_entry(entry: Entry) -> Object:
    out: Object = {}
    if manager := entry.identity.get("manager"):
        out["manager"] = manager
    out["operation"] = APPLY if entry.applied else entry.identity.get("operation", UPDATE)
    out["apiVersion"] = entry.api_version
    if entry.time is not None:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = entry.fields
    if subresource := entry.identity.get("subresource"):
        out["subresource"] = subresource
    return out


def _entry_order(entry: Entry) -> tuple[str, ...]:
    identity = entry.identity
    operation = APPLY if entry.applied else identity.get("operation", UPDATE)
    return operation, entry.time or "", identity.get("manager", ""), entry.api_version, identity.get("subresource", "")


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _decode_time(text: Any) -> str | None:
    """A time in UTC to the second, so that times compare as text.

    Raises:
        ValueError: it is no time.
    """
    if text is None:
        return None
    if len(text) == 20 and text[19] == "Z":
        return str(text)
    moment = datetime.fromisoformat(text).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
