"""`/debug/pprof/trace`: the functions that every thread ran over a time, for chrome://tracing and Perfetto.

Go's trace records the decisions of its scheduler. Here a thread samples the stacks of the others every few
milliseconds. This costs little and shows which code blocked the event loop and for how long, but it sees short calls
only by chance.
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
"""The most events of a trace, which ends when it is reached."""


class _Open(NamedTuple):
    """A function that is running in a sampled thread.

    Attributes:
        frame: the qualified name of the function, and the position of its definition ("FILE:LINE").
        since: when a sample first contained it, in seconds from the start of the trace.
    """

    frame: tuple[str, str]
    since: float


def trace(seconds: float) -> bytes:
    """Sample the stacks of all other threads for `seconds`, and return a trace in Chrome's trace event format (JSON).

    It blocks for that time: call it in a separate thread.
    """
    return orjson.dumps({"displayTimeUnit": "ms", "traceEvents": list(_events(seconds))})


def _events(seconds: float) -> Iterator[dict[str, Any]]:
    began = time.monotonic()
    own, running, event_count = threading.get_ident(), dict[int, list[_Open]](), 0
    now = 0.0
    while now < seconds and event_count < _MOST:
        stacks = {ident: _stack(frame) for ident, frame in sys._current_frames().items() if ident != own}
        for ident in running.keys() | stacks.keys():
            for event in _changes(running.setdefault(ident, []), stacks.get(ident, []), now, ident):
                event_count += 1
                yield event
        time.sleep(INTERVAL)
        now = time.monotonic() - began
    for ident, frames in running.items():
        yield from _changes(frames, [], now, ident)
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident in running:  # a thread that has ended, or that the threading module did not start, has no name there
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": 1,
            "tid": ident,
            "args": {"name": names.get(ident, f"thread {ident}")},
        }


def _stack(frame: FrameType | None) -> list[tuple[str, str]]:
    """Return the functions on a stack, the outermost first. A stack with more than 64 is cut to the outermost 64.

    Each is its qualified name and the position of its definition, in the form "FILE:LINE".

    Args:
        frame: the innermost frame of the stack; None gives [].
    """
    functions: list[tuple[str, str]] = []
    while frame is not None:
        code = frame.f_code
        functions.append((code.co_qualname, f"{code.co_filename}:{code.co_firstlineno}"))
        frame = frame.f_back
    return functions[: -_DEEPEST - 1 : -1]


def _changes(frames: list[_Open], stack: list[tuple[str, str]], now: float, thread: int) -> Iterator[dict[str, Any]]:
    """Yield a complete event of Chrome's format for each frame that is no longer on the stack, the innermost first.

    `frames` is updated to the stack.

    Args:
        frames: the frames of the previous sample, the outermost first.
        stack: the functions of this sample, as `_stack` returns them.
        now: the time of this sample, in seconds from the start of the trace.
        thread: the id of the thread.
    """
    same = 0
    while same < min(len(frames), len(stack)) and frames[same].frame == stack[same]:
        same += 1
    while len(frames) > same:
        (name, where), since = frames.pop()
        times = {"ts": round(since * 1e6), "dur": round((now - since) * 1e6)}
        yield {"ph": "X", "name": name, "pid": 1, "tid": thread, **times, "args": {"at": where}}
    frames += [_Open(frame, now) for frame in stack[same:]]
