"""Durations, rates and thresholds of a run, from SOAK_* variables of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

FORMS = ("one-process", "four-services")


@dataclass(frozen=True, slots=True)
class Settings:
    """One run. Times are in seconds."""

    seconds: float = 300.0
    warm_up: float = 120.0
    """Samples of this time are not judged, because caches fill, schemas are compiled, and the allocator maps its
    arenas.
    """
    interval: float = 10.0
    """Time between two samples. Traffic pauses for each of them, so that nothing in flight is counted."""
    settle: float = 120.0
    """Longest time after the traffic in which growth may go back: idle connections between services are closed after 60
    to 75 s.
    """
    workers: int = 2
    """Workers of each kind (soak/workers.py)."""
    pause: float = 0.01
    """Each worker pauses for so long between two requests; it bounds the rate."""
    bytes_per_request: float = 400.0
    """Most that resident memory may grow for each request. A cached exception that is raised again costs about
    3,000.
    """
    memory_floor: float = 12.0
    """MiB. Less growth is never a failure: a short run cannot tell it from the noise of the allocator."""
    objects_per_request: float = 0.002
    """Most live requests, frames, tasks or connections that may be added for each request. One of the fifty errors
    would leak 0.01.
    """
    object_floor: int = 25
    """Growth of fewer objects is never a failure."""
    connection_floor: int = 25
    """As `object_floor`, for connections: after a burst of requests the services keep idle connections for a minute."""
    file_floor: int = 15
    """Most file descriptors that may be added."""

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read SOAK_SECONDS, SOAK_WARM_UP and so on.

        Raises:
            ValueError: a variable is not a number.
        """
        given: dict[str, Any] = {}
        defaults = cls()
        for field in fields(cls):
            text = environment.get(f"SOAK_{field.name.upper()}")
            if text:
                given[field.name] = type(getattr(defaults, field.name))(text)
        if "seconds" in given and "warm_up" not in given:
            given["warm_up"] = 0.4 * given["seconds"]
        return cls(**given)
