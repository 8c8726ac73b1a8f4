"""Runs a server in an event loop until a signal, through upstream's shutdown sequence; prints where it listens."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from tetrapod.apps.wiring.process import quiet_ends, raise_file_limit
from tetrapod.generic.lifecycle.unavailable import Unavailable
from tetrapod.generic.storage.backend import CannotOpen

log = logging.getLogger(__name__)


class Runnable(Protocol):
    """A server that `run` starts and stops."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def describe(self) -> list[str]: ...


def run(make: Callable[[], Runnable]) -> int:
    """Start, wait for SIGTERM or SIGINT, stop. Returns the exit code; what keeps it from starting is said in a line."""
    import uvloop

    try:
        return uvloop.run(_run(make))
    except (OSError, Unavailable, CannotOpen, ValueError) as error:
        log.debug("not started", exc_info=True)
        fail(str(error) or type(error).__name__)
        return 1


async def _run(make: Callable[[], Runnable]) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(quiet_ends)
    raise_file_limit()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    server = make()
    starting = asyncio.create_task(server.start())
    if not await _unless(stopping, starting):
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await starting
        await server.stop()
        return 0
    _settle()
    for line in server.describe():
        print(line, flush=True)
    await stopping.wait()
    log.info("shutting down")
    await server.stop()
    return 0


def _settle() -> None:
    """Exclude the objects of the start from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 5, 20)


async def _unless(event: asyncio.Event, work: asyncio.Task[None]) -> bool:
    """Wait for the work, or for the event; True where the work was done. Its error is raised."""
    waiting: asyncio.Task[Any] = asyncio.create_task(_wait(event.wait()))
    await asyncio.wait({waiting, work}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if work.done():
        work.result()
        return True
    return False


async def _wait(coroutine: Coroutine[Any, Any, Any]) -> None:
    await coroutine


def fail(message: str) -> None:
    """Print an error message to stderr."""
    print(f"Error: {message}", file=sys.stderr)
