"""Decide whether a process grows: a robust line through its memory, the lower envelope of its live objects, and
thresholds for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final

from soak.samples import WATCHED, Sample
from soak.settings import Settings

_MIB: Final = 1 << 20
FEWEST: Final = 6
"""Samples that are needed for a fit and for thirds."""


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the Theil-Sen estimate: the median of the slopes of all pairs.

    Outliers of up to 29 % of the samples do not move it.
    """
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x2 != x1]
    return median(slopes) if slopes else 0.0


@dataclass(frozen=True, slots=True)
class Growth:
    """One quantity from the first to the last of the judged samples.

    Both are smoothed; more than `most` of growth is a failure.
    """

    name: str
    first: float
    last: float
    most: float

    @property
    def grown(self) -> float:
        return self.last - self.first

    @property
    def failed(self) -> bool:
        return self.grown > self.most


def judged(samples: Sequence[Sample], settings: Settings) -> list[Sample]:
    """Return the samples after the warm-up.

    Raises:
        ValueError: they are too few for a fit.
    """
    kept = [sample for sample in samples if sample.seconds >= settings.warm_up]
    if len(kept) < FEWEST:
        raise ValueError(
            f"{len(kept)} samples after the warm-up, at least {FEWEST} are needed: take more seconds "
            "or a shorter interval"
        )
    return kept


def growths(samples: Sequence[Sample], settings: Settings) -> list[Growth]:
    """Return the growth of memory, of each group of objects and of file descriptors, in samples that `judged` has
    returned.

    Objects and files are compared by their least numbers in the first and in the last third. The controllers watch each
    new kind and end that some seconds after its deletion, so that the numbers go up and down; what leaks raises the
    least of them.
    """
    requests = samples[-1].requests - samples[0].requests
    objects = max(settings.object_floor, settings.objects_per_request * requests)
    memory = max(settings.memory_floor * _MIB, settings.bytes_per_request * requests)
    made = [fitted("memory", [(sample.requests, sample.memory) for sample in samples], memory)]
    made += [
        _least(
            name,
            [sample.group(name) for sample in samples],
            max(objects, settings.connection_floor if name == "connections" else 0),
        )
        for name in WATCHED
    ]
    made.append(_least("files", [sample.files for sample in samples], settings.file_floor))
    return made


def fitted(name: str, points: Sequence[tuple[float, float]], most: float, share: float = 0) -> Growth:
    """Return the growth along a robust line.

    Args:
        name: the name of the quantity.
        points: its values at increasing places.
        most: the growth that is not a failure, at least.
        share: the growth that is not a failure, as a share of the first value.
    """
    each = slope(points)
    middle = median(y - each * x for x, y in points)
    first, last = (middle + each * x for x in (points[0][0], points[-1][0]))
    return Growth(name, first, last, max(most, share * first))


def _least(name: str, values: Sequence[float], most: float) -> Growth:
    third = len(values) // 3
    return Growth(name, min(values[:third]), min(values[-third:]), most)


def growing_types(samples: Sequence[Sample], count: int = 6) -> list[tuple[str, int]]:
    """Return the types whose live objects increased most, for the report: growth of a cache is among them and does not
    fail the run.
    """
    first, last = samples[0].objects, samples[-1].objects
    grown = [(kind, last.get(kind, 0) - first.get(kind, 0)) for kind in last]
    return sorted((pair for pair in grown if pair[1] > 0), key=lambda pair: -pair[1])[:count]
