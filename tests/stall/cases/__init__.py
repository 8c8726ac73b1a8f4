"""The table of cases."""

from __future__ import annotations

from typing import Final

from stall.case import Case
from stall.cases import (
    admission,
    bodies,
    certificates,
    connections,
    custom,
    heads,
    lists,
    objects,
    patches,
    restricted,
    reviews,
    unusual,
    workloads,
)

MODULES: Final = (
    heads,
    connections,
    bodies,
    objects,
    patches,
    reviews,
    lists,
    custom,
    workloads,
    restricted,
    unusual,
    certificates,
    admission,
)
"""The groups of cases, in the order in which they are sent."""
CASES: Final[list[Case]] = [case for module in MODULES for case in module.CASES]
