"""The definitions and the columns of Event: in core/v1 and in events.k8s.io/v1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tetrapod.core.cells import name_of
from tetrapod.core.events.conversion import convert_event
from tetrapod.core.events.strategy import EventStore, EventStrategy
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import since


def core_events(ttl: int) -> ResourceDefinition:
    """Return the definition of events in core/v1.

    Args:
        ttl: seconds until an event is deleted.
    """
    definition = builtin("", "events", EventStrategy(ttl), table=TABLE)
    return replace(definition, equivalents=lambda: [new_events(ttl)])


def new_events(ttl: int) -> ResourceDefinition:
    """Return the definition of events in events.k8s.io/v1, which are stored as core/v1.

    Args:
        ttl: seconds until an event is deleted.
    """
    definition = builtin(
        "events.k8s.io",
        "events",
        EventStrategy(ttl, new_group=True),
        storage_group="",
        table=TABLE,
        convert=convert_event,
    )
    return replace(definition, store=EventStore, equivalents=lambda: [core_events(ttl)])


def _row(obj: Object) -> list[Any]:
    involved = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    series = obj.get("series") or {}
    count = obj.get("count") or obj.get("deprecatedCount") or 0
    last_seen = since(last) if last else since(first)
    if series:
        count = series.get("count", 0)
        last_seen = since(series.get("lastObservedTime"))
    elif count == 0:
        count = 1
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    source_text = f"{component}, {instance}" if instance else component
    kind = involved.get("kind", "").lower()
    return [
        last_seen,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{involved['name']}" if involved.get("name") else kind,
        involved.get("fieldPath", ""),
        source_text,
        (obj.get("message") or obj.get("note") or "").strip(),
        since(first),
        count,
        name_of(obj),
    ]


TABLE: Final = TableConvertor(
    (
        Column("Last Seen"),
        Column("Type"),
        Column("Reason"),
        Column("Object"),
        Column("Subobject", priority=1),
        Column("Source", priority=1),
        Column("Message"),
        Column("First Seen", priority=1),
        Column("Count", priority=1),
        Column("Name", format="name", priority=1),
    ),
    _row,
)
