"""What every thread ran over a time, as `/debug/pprof/trace` tells it: events that chrome://tracing and Perfetto draw.

Go's trace is made of what its scheduler does; here a thread looks at the stacks of the others every few milliseconds. That costs next to
nothing, shows what held the event loop up and for how long, and sees whatever is too short by chance only.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final, NamedTuple

import orjson

INTERVAL: Final = 0.005
_DEEPEST: Final = 64
_MOST: Final = 100_000
"""Events of a trace, which ends with them."""


class _Open(NamedTuple):
    """A frame that is running since."""

    what: tuple[str, str]
    since: float


def trace(seconds: float) -> bytes:
    """Samples for so long; call it in a thread of its own."""
    return orjson.dumps({"displayTimeUnit": "ms", "traceEvents": list(_events(seconds))})


def _events(seconds: float) -> Iterator[dict[str, Any]]:
    began = time.monotonic()
    own, running, made = threading.get_ident(), dict[int, list[_Open]](), 0
    now = 0.0
    while now < seconds and made < _MOST:
        found = {ident: _stack(frame) for ident, frame in sys._current_frames().items() if ident != own}
        for ident in running.keys() | found.keys():
            for event in _changed(running.setdefault(ident, []), found.get(ident, []), now, ident):
                made += 1
                yield event
        time.sleep(INTERVAL)
        now = time.monotonic() - began
    for ident, frames in running.items():
        yield from _changed(frames, [], now, ident)
    for thread in threading.enumerate():
        yield {"ph": "M", "name": "thread_name", "pid": 1, "tid": thread.ident, "args": {"name": thread.name}}


def _stack(frame: FrameType | None) -> list[tuple[str, str]]:
    """The outermost first."""
    found: list[tuple[str, str]] = []
    while frame is not None:
        code = frame.f_code
        found.append((code.co_qualname, f"{code.co_filename}:{code.co_firstlineno}"))
        frame = frame.f_back
    return found[: -_DEEPEST - 1 : -1]


def _changed(frames: list[_Open], found: list[tuple[str, str]], now: float, thread: int) -> Iterator[dict[str, Any]]:
    """Frames that have ended, the innermost first; those that have begun are noted."""
    same = 0
    while same < min(len(frames), len(found)) and frames[same].what == found[same]:
        same += 1
    while len(frames) > same:
        (name, where), since = frames.pop()
        times = {"ts": round(since * 1e6), "dur": round((now - since) * 1e6)}
        yield {"ph": "X", "name": name, "pid": 1, "tid": thread, **times, "args": {"at": where}}
    frames += [_Open(what, now) for what in found[same:]]
