"""Columns of the other kinds of core/v1, and of events, leases, certificates, flow control and migrations.

Upstream: pkg/printers/internalversion/printers.go, printNamespace, printNode, printEvent and others.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, since, spec_of, status_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def _event_row(obj: Object) -> list[Any]:
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


EVENTS: Final = TableConvertor(
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
    _event_row,
)


def _flow_schema_order(obj: Object) -> tuple[int, str]:
    """Return the sort key by which requests are matched. Upstream: FlowSchemaSequence."""
    return spec_of(obj).get("matchingPrecedence") or 0, name_of(obj)


def _flow_schema_row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    dangling = next((c.get("status") for c in status_of(obj).get("conditions") or [] if c.get("type") == "Dangling"), "?")
    return [
        name_of(obj),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence") or 0,
        (spec.get("distinguisherMethod") or {}).get("type") or NONE,
        age(obj),
        dangling,
    ]


FLOW_SCHEMAS: Final = TableConvertor(
    (
        NAME,
        Column("PriorityLevel"),
        Column("MatchingPrecedence"),
        Column("DistinguisherMethod"),
        AGE,
        Column("MissingPL"),
    ),
    _flow_schema_row,
    order=_flow_schema_order,
)


def _priority_level_row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    limited = spec.get("limited") or {}
    shares: Any = limited.get("nominalConcurrencyShares", NONE) if limited else NONE
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    numbers = [queuing.get(k, NONE) for k in ("queues", "handSize", "queueLengthLimit")]
    return [name_of(obj), spec.get("type", ""), shares, *numbers, age(obj)]


PRIORITY_LEVELS: Final = TableConvertor(
    (
        NAME,
        Column("Type"),
        Column("NominalConcurrencyShares"),
        Column("Queues"),
        Column("HandSize"),
        Column("QueueLengthLimit"),
        AGE,
    ),
    _priority_level_row,
)
