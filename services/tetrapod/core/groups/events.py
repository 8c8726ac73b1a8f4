"""Events: one kind of object that core/v1 and events.k8s.io/v1 both serve."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.conversion.events import convert_event
from tetrapod.core.strategies.events import EventStore, EventStrategy
from tetrapod.core.tables import cluster as tables
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition


def core_events() -> ResourceDefinition:
    made = builtin("", "events", EventStrategy(), table=tables.EVENTS)
    return replace(made, equivalents=lambda: [new_events()])


def new_events() -> ResourceDefinition:
    made = builtin(
        "events.k8s.io",
        "events",
        EventStrategy(new_group=True),
        storage_version="v1",
        storage_group="",
        table=tables.EVENTS,
        convert=convert_event,
    )
    return replace(made, store=EventStore, equivalents=lambda: [core_events()])
