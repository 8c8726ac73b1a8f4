"""The list of the kinds of events.k8s.io."""

from __future__ import annotations

from tetrapod.core.events.definition import new_events
from tetrapod.generic.registry.definition import ResourceDefinition


def definitions(ttl: int) -> list[ResourceDefinition]:
    """Return the definitions of the group. Those of core/v1 are listed there.

    Args:
        ttl: seconds until an event is deleted.
    """
    return [new_events(ttl)]
