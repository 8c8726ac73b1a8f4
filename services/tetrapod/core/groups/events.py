"""Resource definitions of events: one kind, served by core/v1 and events.k8s.io/v1."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.conversion.events import convert_event
from tetrapod.core.strategies.events import EventStore, EventStrategy
from tetrapod.core.tables import cluster as tables
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition


def core_events(ttl: int) -> ResourceDefinition:
    """Return the definition in core/v1.

    Args:
        ttl: seconds until an event is deleted.
    """
    definition = builtin("", "events", EventStrategy(ttl), table=tables.EVENTS)
    return replace(definition, equivalents=lambda: [new_events(ttl)])


def new_events(ttl: int) -> ResourceDefinition:
    """Return the definition in events.k8s.io/v1."""
    definition = builtin(
        "events.k8s.io",
        "events",
        EventStrategy(ttl, new_group=True),
        storage_version="v1",
        storage_group="",
        table=tables.EVENTS,
        convert=convert_event,
    )
    return replace(definition, store=EventStore, equivalents=lambda: [core_events(ttl)])
