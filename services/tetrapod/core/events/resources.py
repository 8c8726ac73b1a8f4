"""The list of the kinds of events.k8s.io."""

from __future__ import annotations

from tetrapod.core.events.definition import new_events
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions(ttl: int) -> list[ResourceDefinition]:
    """Return the definition of events in the API group events.k8s.io. That of core/v1 is listed in the core group.

    Args:
        ttl: seconds until an event is deleted.
    """
    return [new_events(ttl)]
