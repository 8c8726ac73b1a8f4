"""Events: one kind of object that core/v1 and events.k8s.io/v1 both serve."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.conversion.events import convert_event
from tetrapod.core.strategies.events import EventStore, EventStrategy
from tetrapod.core.tables import cluster as tables
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition


def core_events(ttl: int) -> ResourceDefinition:
    """`ttl` is how many seconds they are kept."""
    made = builtin("", "events", EventStrategy(ttl), table=tables.EVENTS)
    return replace(made, equivalents=lambda: [new_events(ttl)])


def new_events(ttl: int) -> ResourceDefinition:
    made = builtin(
        "events.k8s.io",
        "events",
        EventStrategy(ttl, new_group=True),
        storage_version="v1",
        storage_group="",
        table=tables.EVENTS,
        convert=convert_event,
    )
    return replace(made, store=EventStore, equivalents=lambda: [core_events(ttl)])
