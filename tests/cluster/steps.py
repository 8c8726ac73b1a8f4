"""Progress on the console: a line for each step, with the time it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print what begins, and at its end how long it took."""
    started = time.monotonic()
    print(f"{text} ... ", end="", flush=True)
    try:
        yield
    except BaseException:
        print(f"failed after {time.monotonic() - started:.1f} s", flush=True)
        raise
    print(f"{time.monotonic() - started:.1f} s", flush=True)
