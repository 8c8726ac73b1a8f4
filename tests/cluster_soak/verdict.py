"""Whether a program of the cluster grows without bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from cluster_soak.programs import Sample
from soak.verdict import slope

_MIB: Final = 1 << 20
FEWEST: Final = 6
"""Samples without which nothing is judged."""
_WARM_UP: Final = 0.25
"""The part of the samples that is not judged, because caches fill after the last restart."""
_MEMORY_FLOOR: Final = 24 * _MIB
_MEMORY_SHARE: Final = 0.2
_COUNT_FLOOR: Final = 20
_COUNT_SHARE: Final = 0.25


@dataclass(frozen=True)
class Growth:
    """A quantity of a program from the first to the last of the judged samples, by a robust line through them."""

    name: str
    first: float
    last: float
    most: float

    @property
    def failed(self) -> bool:
        return self.last - self.first > self.most


def growths(samples: Sequence[Sample]) -> list[Growth]:
    """Return the growth of memory, files and threads. The list is empty if there are too few samples."""
    kept = samples[int(len(samples) * _WARM_UP) :]
    if len(kept) < FEWEST:
        return []
    at = [sample.seconds for sample in kept]
    return [
        _fitted("memory", at, [sample.memory for sample in kept], _MEMORY_FLOOR, _MEMORY_SHARE),
        _fitted("files", at, [sample.files for sample in kept], _COUNT_FLOOR, _COUNT_SHARE),
        _fitted("threads", at, [sample.threads for sample in kept], _COUNT_FLOOR, _COUNT_SHARE),
    ]


def _fitted(name: str, at: Sequence[float], values: Sequence[int], floor: float, share: float) -> Growth:
    points = list(zip(at, values, strict=True))
    each = slope(points)
    middle = median(y - each * x for x, y in points)
    first, last = middle + each * at[0], middle + each * at[-1]
    return Growth(name, first, last, max(floor, share * first))
