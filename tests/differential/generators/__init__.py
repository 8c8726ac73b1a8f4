"""Generators: each makes requests of one kind, and reports how the responses differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from differential.generators import (
    custom,
    directives,
    encodings,
    managers,
    objects,
    scenarios,
    selectors,
    subresources,
    sweeps,
    watches,
)
from differential.report import Report
from differential.schemas import Schemas
from differential.servers import Pair

GENERATORS: Final[dict[str, Callable[[Pair, Schemas, Report, int, int, str], None]]] = {
    module.NAME: module.run
    for module in (
        *(objects, sweeps, custom, directives, encodings, managers),
        *(selectors, subresources, watches, scenarios),
    )
}
"""By name: sends requests with a seed, a number of requests for each example, and a selection."""
