"""Runs a server in the event loop of this process until a signal arrives."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol

from tetrapod.apps.systemd import ServiceManager
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.scheduling import event_loop
from tetrapod.generic.storage.backend import CannotOpen
from tetrapod.machinery.golang.quoting import go_quote

log = logging.getLogger(__name__)

_HANDLE_CLOSED: Final = "the handler is closed"
"""The end of uvloop's error for writing to a connection that the client has reset."""

_START_THRESHOLD: Final = 100_000
"""The collector's threshold until the server is ready. Scanning imported modules again and again took 5 % of the
start.
"""


class Server(Protocol):
    """A server that `run` can start and stop."""

    async def start(self) -> None:
        """Start the server, and return when it is ready, without a time limit.

        If it raises an exception, `run` reports it and calls `stop`, which stops the parts that have been started.
        """
        ...

    async def stop(self) -> None:
        """Stop the server, also if the start has not completed."""
        ...

    def describe(self) -> list[str]:
        """Return the lines to print when the server is ready."""
        ...


class Host(Protocol):
    """The receiver of a server process's reports about its state, which may also stop the process.

    `StandaloneHost` implements it for a single process, and `WorkerLink` for one of several workers.

    Attributes:
        signals: the signals that stop the process.
    """

    signals: Sequence[signal.Signals]

    def started(self, stop: Callable[[], None]) -> None:
        """Begin to report. Called in the event loop before the server is created. `stop` stops the process."""
        ...

    def ready(self, lines: list[str]) -> None:
        """Report that the server is ready. `lines` describe it, such as its URL, for output."""
        ...

    async def stopping(self) -> None:
        """Report that the server shuts down."""
        ...


class StandaloneHost:
    """The `Host` of a server in one process: standard output and the service manager."""

    signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self._manager = ServiceManager()
        self._heartbeats: asyncio.Task[None] | None = None

    def started(self, stop: Callable[[], None]) -> None:
        """Do nothing: signals stop the process."""

    def ready(self, lines: list[str]) -> None:
        """Print the lines, notify the service manager, and send heartbeats if its watchdog is enabled."""
        for line in lines:
            print(line, flush=True)
        self._manager.ready()
        if self._manager.interval:
            self._heartbeats = asyncio.create_task(self._send_heartbeats(), name="systemd watchdog")

    async def stopping(self) -> None:
        """Tell the service manager that the process shuts down. Heartbeats continue until the event loop ends."""
        self._manager.stopping()

    async def _send_heartbeats(self) -> None:
        """Send heartbeats until cancelled. They stop when the event loop blocks."""
        while True:
            self._manager.heartbeat()
            await asyncio.sleep(self._manager.interval)


def delay_garbage_collection() -> None:
    """Make Python's cyclic garbage collector run less often until the server is ready."""
    gc.set_threshold(_START_THRESHOLD)


def run(make: Callable[[], Server], host: Host | None = None) -> int:
    """Run a server until a signal or its host stops it, in a new event loop.

    An OSError, Unavailable, CannotOpen or ValueError is printed to stderr in one line; other exceptions are raised.

    Args:
        make: creates the server; called in the event loop.
        host: the party to which the process reports; None for a `StandaloneHost`.

    Returns:
        The exit code of the process: 0, or 1 after a printed error, with which the server usually could not start.
    """
    try:
        return event_loop.run(_run(make, host or StandaloneHost()))
    except (OSError, Unavailable, CannotOpen, ValueError) as error:
        log.debug("not started", exc_info=True)
        print(f"Error: {str(error) or type(error).__name__}", file=sys.stderr)
        return 1


async def _run(make: Callable[[], Server], host: Host) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(handle_loop_exception)
    raise_file_limit()
    event_loop.on_signals(host.signals, stopping.set)
    host.started(stopping.set)
    server = make()
    starting = asyncio.create_task(server.start())
    if not await _completed_before(starting, stopping):
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await starting
        await server.stop()
        return 0
    _freeze_objects()
    host.ready(server.describe())
    await stopping.wait()
    log.info("shutting down")
    await host.stopping()
    await server.stop()
    return 0


def _freeze_objects() -> None:
    """Exclude all present objects from garbage collection, and make the collector run less often than by default.

    Measured: with Python's thresholds, 10 % of the CPU time of a GET was garbage collection. Parsed objects of writes
    survive in the young generations: collecting the middle one after 400,000 objects stopped every request for 150 to
    270 ms. Under the load of a cluster of 20 nodes, collections of the two took 15 and 59 ms of CPU time with
    thresholds of 10,000 and 5. They take 4 and 18 ms with these, and in all no more. The third threshold makes full
    collections as rare as 20 did: with a million objects they take half a second, and find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 5, 80)


async def _completed_before(work: asyncio.Task[None], event: asyncio.Event) -> bool:
    """Wait for a task or an event, and return whether the task completed; True if both happened.

    A task that has not completed continues to run.

    Raises:
        BaseException: the error of the completed task.
    """
    waiting: asyncio.Task[Any] = asyncio.create_task(_wait(event.wait()))
    await asyncio.wait({waiting, work}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if work.done():
        work.result()
        return True
    return False


async def _wait(coroutine: Coroutine[Any, Any, Any]) -> None:
    await coroutine


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard limit, as Go does (os/rlimit.go).

    A watch needs one or two files. Windows has no such limit.
    """
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def handle_loop_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that the event loop could not pass to any task.

    A TLS connection that the client reset is logged in one line, as Go's net/http does, and any other exception with
    its traceback.

    Args:
        context: the details from asyncio, as `loop.call_exception_handler` gets them.
    """
    transport, exception = context.get("transport"), context.get("exception")
    # A transport of uvloop whose handle was closed by an error is not closing.
    lost = transport is not None and (transport.is_closing() or _HANDLE_CLOSED in str(exception))
    if lost and "SSL" in str(context.get("message", "")):
        log.info("TLS connection lost: %s", exception)
        return
    loop.default_exception_handler(context)


def log_flags(flags: Mapping[str, str]) -> None:
    """Log each flag with its value in a line, at -v 2 and above.

    Upstream: component-base/cli/flag, PrintFlags
    """
    if not log.isEnabledFor(logging.INFO):
        return
    for name, value in sorted(flags.items()):
        log.info("FLAG: --%s=%s", name, go_quote(value))
