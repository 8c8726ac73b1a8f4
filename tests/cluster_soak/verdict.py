"""Whether a program of the cluster grows without bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cluster_soak.programs import Sample
from soak.verdict import FEWEST, Growth, fitted

_MIB: Final = 1 << 20
_WARM_UP: Final = 0.25
"""The part of the samples that is not judged, because caches fill after the last restart."""
_MEMORY_FLOOR: Final = 24 * _MIB
_MEMORY_SHARE: Final = 0.2
_COUNT_FLOOR: Final = 20
_COUNT_SHARE: Final = 0.25


def growths(samples: Sequence[Sample]) -> list[Growth]:
    """Return the growth of memory, files and threads. The list is empty if there are too few samples."""
    kept = samples[int(len(samples) * _WARM_UP) :]
    if len(kept) < FEWEST:
        return []
    return [
        fitted("memory", [(sample.seconds, sample.memory) for sample in kept], _MEMORY_FLOOR, _MEMORY_SHARE),
        fitted("files", [(sample.seconds, sample.files) for sample in kept], _COUNT_FLOOR, _COUNT_SHARE),
        fitted("threads", [(sample.seconds, sample.threads) for sample in kept], _COUNT_FLOOR, _COUNT_SHARE),
    ]
