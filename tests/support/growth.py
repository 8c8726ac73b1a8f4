"""Check that the time of an operation grows linearly: CPU time of this thread, at a size and at sixteen times that
size.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any, Final

from tetrapod.machinery.status import StatusError

TIMES: Final = 16
MOST: Final = 64.0
"""The largest accepted ratio of the two times. Measured: a linear operation takes 16 to 45 times as long, because the
larger input does not fit into the CPU's caches and needs new memory pages. A quadratic one takes 256 times as long.
"""
_ENOUGH: Final = 0.002
"""The least CPU time in seconds at the smaller size. Less is noise: the size is doubled until the operation takes that
long.
"""
_LARGEST: Final = 16_000
_RUNS: Final = 3
_ATTEMPTS: Final = 4


def assert_linear(
    operation: Callable[[Any], object],
    make: Callable[[int], Any],
    size: int = 500,
    errors: tuple[type[Exception], ...] = (StatusError,),
) -> None:
    """Run `operation` on inputs of a size and of `TIMES` that size, until one of its runs is fast enough.

    Args:
        operation: may change its input. It gets a new input each time.
        make: an input of a size.
        size: the first size that is tried.
        errors: exceptions that the operation may raise; any other fails the test.
    """
    once = _fastest(operation, errors, make, size)
    while once < _ENOUGH and size < _LARGEST:
        size *= 2
        once = _fastest(operation, errors, make, size)
    ratios = []
    for _ in range(_ATTEMPTS):  # other processes evict this CPU's caches during a measurement
        for _ in range(_RUNS):
            ratios.append(_seconds(operation, errors, make(TIMES * size)) / once)
            if ratios[-1] <= MOST:
                return
        once = _fastest(operation, errors, make, size)
    raise AssertionError(f"{TIMES} times {size} takes {min(ratios):.1f} times as long ({once * 1000:.0f} ms at {size})")


def _fastest(
    operation: Callable[[Any], object], errors: tuple[type[Exception], ...], make: Callable[[int], Any], size: int
) -> float:
    return min(_seconds(operation, errors, make(size)) for _ in range(_RUNS))


def _seconds(operation: Callable[[Any], object], errors: tuple[type[Exception], ...], given: Any) -> float:
    gc.disable()
    start = time.thread_time()
    try:
        operation(given)
    except errors:
        pass
    finally:
        gc.enable()
    return time.thread_time() - start
