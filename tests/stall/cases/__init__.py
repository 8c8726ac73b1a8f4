"""The table of cases."""

from __future__ import annotations

from typing import Final

from stall.case import Case
from stall.cases import (
    admission,
    bodies,
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

CASES: Final[list[Case]] = [
    *heads.CASES,
    *connections.CASES,
    *bodies.CASES,
    *objects.CASES,
    *patches.CASES,
    *reviews.CASES,
    *lists.CASES,
    *custom.CASES,
    *workloads.CASES,
    *restricted.CASES,
    *unusual.CASES,
    *admission.CASES,
]
