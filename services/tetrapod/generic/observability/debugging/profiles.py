"""`/debug/pprof`: profiles of the process, made with Python's means, under the paths of Go's profiles.

- `goroutine`: stacks of tasks and threads
- `threadcreate`: stacks of threads
- `heap`: live objects by type, with `?debug=2` of all types and not only the largest; with `?seconds=`, allocations in
  that time
- `allocs`: allocations in a given time
- `profile`: a recording by cProfile, for `python -m pstats`
- `trace`: samples of the functions that each thread runs (sampling.py)
- `symbol`: the object at an address (symbols.py)

The authorizer decides who may read them.
Upstream: k8s.io/apiserver/pkg/server/routes/profiling.go; net/http/pprof
"""

from __future__ import annotations

import asyncio
import io
import marshal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from tetrapod.generic.http.headers import NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.generic.observability.debugging import sampling, symbols
from tetrapod.generic.observability.debugging.symbols import live_objects
from tetrapod.machinery import status

PREFIX: Final = "/debug/pprof/"
_HTML: Final[HeaderList] = [(b"content-type", b"text/html; charset=utf-8")]
_MOST: Final = 100
_LONGEST: Final = 50.0
_recording, _tracing = asyncio.Lock(), asyncio.Lock()


class _Parameters(NamedTuple):
    """The parameters of a profile.

    Attributes:
        seconds: how long to observe; 0 if the request does not say.
        everything: whether to list everything instead of the largest entries.
    """

    seconds: float
    everything: bool


async def redirect(request: Request) -> Response:
    """Redirect `/debug/pprof` to the index. As in Go's http.Redirect, only GET and HEAD get a body."""
    location = (b"location", PREFIX.encode())
    if request.method not in ("GET", "HEAD"):
        return Response(302, [location])
    return Response(302, [*_HTML, location], b'<a href="/debug/pprof/">Found</a>.\n\n')


async def handle(request: Request) -> Response:
    """Serve the index of the profiles, or one profile by name; 404 for an unknown name.

    Raises:
        StatusError: 400, the profile is already being recorded.
    """
    name = request.path.removeprefix(PREFIX)
    if not name:
        lines = "".join(f"<li><a href='{key}?debug=1'>{key}</a>: {text}</li>\n" for key, (text, _) in PROFILES.items())
        return Response(
            200,
            [*_HTML, NOSNIFF],
            f"<html>\n<head>\n<title>{PREFIX}</title>\n</head>\n<ul>\n{lines}</ul>\n</html>\n".encode(),
        )
    if name == "symbol":
        return await symbols.handle(request)
    if name not in PROFILES:
        return Response(
            404,
            [TEXT_TYPE, (b"x-go-pprof", b"1"), NOSNIFF],
            b"Unknown profile\n",
        )
    query = request.query().values
    debug = query.get("debug", "0")
    body = await PROFILES[name][1](_Parameters(_seconds(query.get("seconds", "")), debug == "2"))
    if debug not in ("", "0"):
        return Response(200, [TEXT_TYPE, NOSNIFF], body)
    disposition = f'attachment; filename="{name}"'.encode()
    return Response(
        200, [(b"content-type", b"application/octet-stream"), (b"content-disposition", disposition), NOSNIFF], body
    )


def _seconds(text: str) -> float:
    """Return `?seconds` as a number, at most 50; 0 if it is missing or invalid. Longer requests would time out."""
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return min(seconds, _LONGEST) if seconds > 0 else 0.0  # false for nan


async def _profile(parameters: _Parameters) -> bytes:
    """Record the event loop's thread for `parameters.seconds` (0: 30 s), and return the data for `python -m pstats`.

    Raises:
        StatusError: 400, another recording is in progress.
    """
    import cProfile

    if _recording.locked():
        raise status.bad_request("Could not enable CPU profiling: cpu profiling already in use")
    async with _recording:
        profile = cProfile.Profile()
        profile.enable()
        try:
            await asyncio.sleep(parameters.seconds or 30.0)
        finally:
            profile.disable()
    profile.create_stats()
    return marshal.dumps(profile.stats)


async def _heap(parameters: _Parameters) -> bytes:
    return await (
        _allocations(parameters)
        if parameters.seconds
        else asyncio.to_thread(_live_objects, None if parameters.everything else _MOST)
    )


def _live_objects(most: int | None) -> bytes:
    """Return a list of live objects by type, as text: the `most` types that use the most memory; None for all."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for obj in live_objects():
        kind = type(obj)
        name = f"{kind.__module__}.{kind.__qualname__}"
        counts[name] += 1
        sizes[name] += sys.getsizeof(obj, 0)
    lines = [f"heap profile: {counts.total()} objects, {sizes.total()} bytes in containers\n"]
    lines += [f"{counts[name]:10} {size:12} {name}\n" for name, size in sizes.most_common(most)]
    return "".join(lines).encode()


async def _allocations(parameters: _Parameters) -> bytes:
    """Record allocations for some time, and return the source lines whose memory is still in use at the end.

    Args:
        parameters: `seconds` is the time; 0 means one second.

    Returns:
        Text with one source line on each line, with the size and number of its allocations, the largest first; at most
        100.

    Raises:
        StatusError: 400, another recording is in progress.
    """
    import tracemalloc

    if tracemalloc.is_tracing():
        raise status.bad_request("Could not enable heap profiling: it is in use")
    tracemalloc.start()
    try:
        await asyncio.sleep(parameters.seconds or 1.0)
        statistics = await asyncio.to_thread(lambda: tracemalloc.take_snapshot().statistics("lineno")[:_MOST])
    finally:
        tracemalloc.stop()
    return "".join(f"{s}\n" for s in statistics).encode()


async def _stacks(parameters: _Parameters) -> bytes:
    out = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda t: t.get_name()):
        out.write(f"task {task.get_name()}\n")
        task.print_stack(file=out)
    out.write(_thread_stacks())
    return out.getvalue().encode()


async def _trace(parameters: _Parameters) -> bytes:
    if _tracing.locked():
        raise status.bad_request("Could not enable tracing: tracing is already in use")
    async with _tracing:
        return await asyncio.to_thread(sampling.trace, parameters.seconds or 1.0)


async def _threads(parameters: _Parameters) -> bytes:
    return f"threadcreate profile: total {threading.active_count()}\n{_thread_stacks()}".encode()


def _thread_stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames().items()
    return "".join(
        f"thread {names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}\n" for ident, frame in frames
    )


PROFILES: Final[dict[str, tuple[str, Callable[[_Parameters], Awaitable[bytes]]]]] = {
    "allocs": ("What is allocated in the next N seconds (seconds=N, 1 by default), by line.", _allocations),
    "goroutine": ("Stacks of all tasks and threads.", _stacks),
    "heap": (
        "Live objects by type, with debug=2 all types; with seconds=N, what was allocated in that time, by line.",
        _heap,
    ),
    "profile": ("What ran in the next N seconds (seconds=N, 30 by default), for python -m pstats.", _profile),
    "threadcreate": ("Stacks of all threads.", _threads),
    "trace": (
        "What each thread ran in the next N seconds (seconds=N, 1 by default), for chrome://tracing and Perfetto.",
        _trace,
    ),
}
