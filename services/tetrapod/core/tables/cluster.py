"""Columns of the other kinds of core/v1, and of events, leases, certificates, flow control and migrations.

Upstream: pkg/printers/internalversion/printers.go, printNamespace, printNode, printEvent and others.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of, status_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


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
