"""`/debug/pprof`: what the process is doing, by Python's own means, under the paths where Go has its profiles.

`goroutine` are the stacks of tasks and threads, `threadcreate` of threads, `heap` the live objects by type (or, with `?seconds=`, what was
allocated meanwhile), `allocs` what is being allocated, `profile` a recording by cProfile that `python -m pstats` reads, `trace` samples of
what each thread runs (sampling.py), `symbol` what lives at an address (symbols.py). Who may ask is decided by the authorizer.
Upstream: k8s.io/apiserver/pkg/server/routes/profiling.go, net/http/pprof.
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
from typing import Final

from tetrapod.generic.debugging import sampling, symbols
from tetrapod.generic.debugging.objects import live_objects
from tetrapod.generic.request import HeaderList, Request, Response
from tetrapod.machinery import status
from tetrapod.machinery.requestinfo import query_values

PREFIX: Final = "/debug/pprof/"
_NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
_HTML: Final[HeaderList] = [(b"content-type", b"text/html; charset=utf-8")]
_MOST: Final = 100
_LONGEST: Final = 50.0
_recording, _tracing = asyncio.Lock(), asyncio.Lock()


async def redirect(request: Request) -> Response:
    """Go's http.Redirect: only who reads gets a page."""
    location = (b"location", PREFIX.encode())
    if request.method not in ("GET", "HEAD"):
        return Response(302, [location])
    return Response(302, [*_HTML, location], b'<a href="/debug/pprof/">Found</a>.\n\n')


async def handle(request: Request) -> Response:
    """The index, or a profile."""
    name = request.path.removeprefix(PREFIX)
    if not name:
        lines = "".join(f"<li><a href='{key}?debug=1'>{key}</a>: {text}</li>\n" for key, (text, _) in PROFILES.items())
        return Response(
            200, [*_HTML, _NOSNIFF], f"<html>\n<head>\n<title>{PREFIX}</title>\n</head>\n<ul>\n{lines}</ul>\n</html>\n".encode()
        )
    if name == "symbol":
        return await symbols.handle(request)
    if name not in PROFILES:
        return Response(404, [(b"content-type", b"text/plain; charset=utf-8"), (b"x-go-pprof", b"1"), _NOSNIFF], b"Unknown profile\n")
    query = query_values(request.query_string)
    body = await PROFILES[name][1](_seconds(query.get("seconds", "")))
    if query.get("debug", "0") not in ("", "0"):
        return Response(200, [(b"content-type", b"text/plain; charset=utf-8"), _NOSNIFF], body)
    disposition = f'attachment; filename="{name}"'.encode()
    return Response(200, [(b"content-type", b"application/octet-stream"), (b"content-disposition", disposition), _NOSNIFF], body)


def _seconds(text: str) -> float:
    """How long to look, 0 where nothing (sensible) is said; a request that lasts longer would be cut off."""
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return min(seconds, _LONGEST) if seconds > 0 else 0.0  # nan is not


async def _profile(seconds: float) -> bytes:
    """What the event loop's thread ran."""
    import cProfile

    if _recording.locked():
        raise status.bad_request("Could not enable CPU profiling: cpu profiling already in use")
    async with _recording:
        profile = cProfile.Profile()
        profile.enable()
        try:
            await asyncio.sleep(seconds or 30.0)
        finally:
            profile.disable()
    profile.create_stats()
    return marshal.dumps(profile.stats)


async def _heap(seconds: float) -> bytes:
    return await (_allocations(seconds) if seconds else asyncio.to_thread(_live_objects))


def _live_objects() -> bytes:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for found in live_objects():
        kind = type(found)
        name = f"{kind.__module__}.{kind.__qualname__}"
        counts[name] += 1
        sizes[name] += sys.getsizeof(found, 0)
    lines = [f"heap profile: {counts.total()} objects, {sizes.total()} bytes in containers\n"]
    lines += [f"{counts[name]:10} {size:12} {name}\n" for name, size in sizes.most_common(_MOST)]
    return "".join(lines).encode()


async def _allocations(seconds: float) -> bytes:
    """By line, what was allocated in the given time (a second, where none is given) and is alive still."""
    import tracemalloc

    if tracemalloc.is_tracing():
        raise status.bad_request("Could not enable heap profiling: it is in use")
    tracemalloc.start()
    try:
        await asyncio.sleep(seconds or 1.0)
        found = await asyncio.to_thread(lambda: tracemalloc.take_snapshot().statistics("lineno")[:_MOST])
    finally:
        tracemalloc.stop()
    return "".join(f"{s}\n" for s in found).encode()


async def _stacks(seconds: float) -> bytes:
    out = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda t: t.get_name()):
        out.write(f"task {task.get_name()}\n")
        task.print_stack(file=out)
    out.write(_thread_stacks())
    return out.getvalue().encode()


async def _trace(seconds: float) -> bytes:
    if _tracing.locked():
        raise status.bad_request("Could not enable tracing: tracing is already in use")
    async with _tracing:
        return await asyncio.to_thread(sampling.trace, seconds or 1.0)


async def _threads(seconds: float) -> bytes:
    return f"threadcreate profile: total {threading.active_count()}\n{_thread_stacks()}".encode()


def _thread_stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames().items()
    return "".join(f"thread {names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}\n" for ident, frame in frames)


PROFILES: Final[dict[str, tuple[str, Callable[[float], Awaitable[bytes]]]]] = {
    "allocs": ("What is allocated in the next N seconds (seconds=N, 1 by default), by line.", _allocations),
    "goroutine": ("Stacks of all tasks and threads.", _stacks),
    "heap": ("Live objects by type; with seconds=N, what was allocated in that time, by line.", _heap),
    "profile": ("What ran in the next N seconds (seconds=N, 30 by default), for python -m pstats.", _profile),
    "threadcreate": ("Stacks of all threads.", _threads),
    "trace": ("What each thread ran in the next N seconds (seconds=N, 1 by default), for chrome://tracing and Perfetto.", _trace),
}
