"""Decoding and encoding of `metadata.managedFields`, which has one entry for each manager.

A manager is identified by the JSON text of the fields that distinguish entries: name, operation, version (of updates
only) and subresource. This text is its identifier (`manager_id`).

Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/managedfields.go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from tetrapod.machinery.boundedcache import BoundedCache, bounded
from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.fieldset import FieldSet
from tetrapod.machinery.fieldmanager.pathelement import scalar_json
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

APPLY: Final = "Apply"
UPDATE: Final = "Update"


@dataclass(frozen=True, slots=True)
class Entry:
    """A decoded entry of managed fields.

    Attributes:
        identity: the decoded identifier of the manager: its name, operation and so on.
        fields: the fields that the manager owns.
        api_version: the version in which the fields are named.
        applied: whether the operation is Apply, rather than Update.
        time: the time of the last change; None if it is unset.
    """

    identity: Object
    fields: FieldSet
    api_version: str
    applied: bool
    time: str | None = None

    def owning(self, fields: FieldSet) -> Entry:
        """Return a copy of the entry that owns `fields` instead."""
        return replace(self, fields=fields)


Managed = dict[str, Entry]
"""Entries by the identifiers of their managers."""


def identifier(manager: str, operation: str, api_version: str, subresource: str) -> str:
    """Return the identifier of a manager, as JSON; empty parts are left out.

    Args:
        manager: the name of the manager.
        operation: APPLY or UPDATE.
        api_version: the version for an update, and "" for an apply.
        subresource: the subresource, or "".
    """
    return _identifier((manager, operation, api_version, subresource))


@bounded(count=8192, size=4 << 20)
def _identifier(manager_fields: tuple[str, str, str, str]) -> str:
    manager, operation, api_version, subresource = manager_fields
    parts = {"manager": manager, "operation": operation, "apiVersion": api_version, "subresource": subresource}
    return "{" + ",".join(f'"{name}":{scalar_json(value)}' for name, value in parts.items() if value) + "}"


@bounded(count=8192, size=4 << 20)
def identity_of(manager_id: str) -> Object:
    """Return the decoded fields of a manager's identifier. The object is cached, so callers must not change it.

    Args:
        manager_id: the identifier as JSON, as `identifier` returns it.
    """
    identity: Object = orjson.loads(manager_id)
    return identity


def new_entry(manager_id: str, fields: FieldSet, api_version: str, *, applied: bool, time: str | None = None) -> Entry:
    """Return an entry of managedFields.

    Args:
        manager_id: the encoded identifier of the manager, see `identity_of`.
        fields: the fields that it owns.
        api_version: the version in which the fields are named.
        applied: whether it owns them by server-side apply instead of by updates.
        time: the time of the last change; None for an entry without one.
    """
    return Entry(identity_of(manager_id), fields, api_version, applied, time)


def is_reset(entries: Any) -> bool:
    """Return whether the managedFields of a request clear all ownership.

    An empty list does, and a list with one entry whose fields are unset. Empty `fieldsV1` are set.

    Args:
        entries: the decoded managedFields of the request; any JSON value.
    """
    if not isinstance(entries, list) or len(entries) > 1:
        return False
    return not entries or all(value in (None, "") for value in (entries[0] or {}).values())


def decode(entries: Any) -> Managed:
    """Decode the managedFields of an object into entries by identifier.

    If a manager has two entries, the later one is kept.

    Args:
        entries: the managedFields; None is treated as an empty list.

    Raises:
        ValueError: an entry is malformed.
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
        manager_id = identifier(
            entry.get("manager") or "", operation, "" if applied else api_version, entry.get("subresource") or ""
        )
        fields = _decode_fields(entry.get("fieldsV1"))
        managed[manager_id] = new_entry(
            manager_id, fields, api_version, applied=applied, time=_decode_time(entry.get("time"))
        )
    return managed


def _decode_fields(fields: Any) -> FieldSet:
    """Decode a field set. The result is cached by the JSON text, and must not be modified.

    Raises:
        ValueError: the value is not a field set.
    """
    key = orjson.dumps(fields)
    known = _decoded.recall(key)
    return _decoded.keep(key, fieldset.decode(fields)) if known is None else known


_decoded: Final[BoundedCache[bytes, FieldSet]] = BoundedCache(
    count=4096, size=8 << 20, largest=64 << 10, weigh_entry=lambda text, _: 4 * len(text) + 200
)


def encode(managed: Managed) -> list[Object]:
    """Return managedFields with the entries in upstream's order.

    They are sorted by operation, time, manager, version and subresource.

    Args:
        managed: the entries by the identifiers of their managers.
    """
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


def _decode_time(text: Any) -> str | None:
    """Return the time of an entry in UTC and whole seconds, so that times compare as text; None if it is unset.

    Raises:
        ValueError: the text is not a time.
    """
    if text is None:
        return None
    if len(text) == 20 and text[19] == "Z":
        return str(text)
    moment = datetime.fromisoformat(text).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
