"""The supervisor of `--workers`: it accepts the connections of the server and distributes them to worker processes.

Workers are forked from it after the imports, which they share in memory. It has neither threads nor an event loop, so
that forking is safe. `Distributor` (distributor.py) passes the connections on.
"""

from __future__ import annotations

import gc
import logging
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click

from tetrapod.apps.options.options import Options
from tetrapod.apps.options.worker import Worker
from tetrapod.apps.process import Server, raise_file_limit, run
from tetrapod.apps.systemd import ServiceManager
from tetrapod.apps.workers import messages
from tetrapod.apps.workers.child import Child, State
from tetrapod.apps.workers.distributor import Distributor
from tetrapod.apps.workers.link import WorkerLink
from tetrapod.apps.workers.signals import Signals
from tetrapod.generic.http.listening import bind
from tetrapod.generic.http.unix_sockets import bind_unix

log = logging.getLogger(__name__)

_STABLE_SECONDS: Final = 10.0
"""A worker that was ready for this long is replaced at once when it ends."""
_FIRST_BACKOFF: Final = 0.5
_LONGEST_BACKOFF: Final = 30.0
_START_ATTEMPTS: Final = 3
"""Attempts for each worker after which the supervisor ends, if no worker is ready."""


def supervise(options: Options, make: Callable[[Options], Server]) -> int:
    """Run a server in `--workers` processes until SIGTERM or SIGINT, and return the exit code of the process.

    Args:
        options: the options.
        make: creates the server; called in the event loop of each worker.
    """
    raise_file_limit()
    serving = options.serving
    try:
        listeners = [
            options.listener or bind(serving.bind_address, serving.secure_port, share_port=serving.permit_port_sharing)
        ]
        if serving.unix_socket:
            listeners.append(bind_unix(serving.unix_socket))
        directory = Path(tempfile.mkdtemp(prefix="tetrapod-workers-"))
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    gc.collect()
    gc.freeze()  # collections in the workers do not write to the objects that they share
    try:
        return Supervisor(options, make, listeners, directory).run()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass(slots=True)
class _Slot:
    """One of the `--workers` positions. When its process ends, another one with the same index is started.

    Attributes:
        index: the number of the worker.
        child: the process; None while none runs.
        failures: how many processes in a row ended before they were ready, or with an error in their first 10 ready
            seconds.
        due: when to start the next process, by the monotonic clock.
    """

    index: int
    child: Child | None = None
    failures: int = 0
    due: float = 0.0


class Supervisor:
    """The process that starts the workers and passes connections to them.

    Args:
        options: the options.
        make: creates the server of a worker.
        listeners: the bound sockets: that of the port, and perhaps a Unix socket.
        directory: an empty directory that only this user may enter, for what the workers share: the sockets by which
            they read each other's metrics, and the locks of the audit log. The caller creates and removes it.
    """

    def __init__(
        self, options: Options, make: Callable[[Options], Server], listeners: Sequence[socket.socket], directory: Path
    ) -> None:
        self._options, self._make = options, make
        self._directory = directory
        self._slots = [_Slot(index) for index in range(options.tetrapod.workers)]
        self._manager = ServiceManager()
        self._selector = selectors.DefaultSelector()
        self._signals = Signals((signal.SIGTERM, signal.SIGINT), (signal.SIGCHLD,))
        self._connections = Distributor(listeners, options.serving.unix_socket, self._selector, lambda: self._children)
        self._announced = self._stopping = False
        self._failures = 0  # processes that ended before they were ready, since a worker was last ready
        self._exit_code = 0
        self._heartbeat_due = 0.0

    def run(self) -> int:
        """Run until all workers have ended, and return the exit code."""
        self._selector.register(self._signals.descriptor, selectors.EVENT_READ, self._signals.clear)
        self._start(self._slots[0])
        while True:
            for key, _ in self._selector.select(self._timeout()):
                key.data()
            if self._signals.received and not self._stopping:
                self._stop(0)
            self._reap()
            if self._stopping and not self._children:
                return self._exit_code
            self._start_due()
            self._kill_unresponsive()
            self._send_heartbeat()
            self._connections.work()

    @property
    def _children(self) -> list[Child]:
        return [slot.child for slot in self._slots if slot.child is not None]

    def _timeout(self) -> float:
        """Return how many seconds the main loop may wait for events.

        It must wake up for the next start of a worker, the next heartbeat and the next check of the workers.
        """
        now = time.monotonic()
        times = [now + messages.REPORT_INTERVAL]
        if self._connections.listening and not self._stopping:
            times += [slot.due for slot in self._slots if slot.child is None]
        if self._manager.interval and self._announced:
            times.append(self._heartbeat_due)
        if (due := self._connections.due(now)) is not None:
            times.append(due)
        return max(0.0, min(times) - now)

    # --- messages of workers

    def _read(self, child: Child) -> None:
        if not child.read(self._on_message):
            self._selector.unregister(child.channel)
            child.state = State.CLOSING

    def _on_message(self, child: Child, message: bytes) -> None:
        kind, _, rest = message.partition(b"\n")
        if kind == messages.LISTENING and child.state is State.STARTING:
            child.state = State.LISTENING
            self._on_listening()
        elif kind == messages.READY:
            child.state, child.ready_at = State.READY, time.monotonic()
            self._failures = 0
            self._announce_if_ready(rest.decode())
        elif kind == messages.STOPPING:
            child.state = State.RETIRING
            child.send(messages.STOP if self._stopping or self._signals.received else messages.RETIRE)
        elif kind == messages.CLOSING:
            child.state = State.CLOSING
            child.end_connections()
            if self._stopping:
                self._connections.close()

    def _on_listening(self) -> None:
        """Begin to listen when the first worker can serve connections. Do nothing at later calls.

        The main loop then starts the other workers, which need the certificates that the first one has created.
        """
        if not self._stopping:
            self._connections.listen()

    def _announce_if_ready(self, lines: str) -> None:
        children = self._children
        if self._announced or len(children) < len(self._slots) or any(c.state is not State.READY for c in children):
            return
        self._announced = True
        print(lines, flush=True)
        self._manager.ready()

    # --- processes

    def _start_due(self) -> None:
        for slot in self._slots:
            if (
                slot.child is None
                and self._connections.listening
                and not self._stopping
                and time.monotonic() >= slot.due
            ):
                self._start(slot)

    def _start(self, slot: _Slot) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            os._exit(self._run_worker(slot.index, theirs))
        theirs.close()
        child = slot.child = Child(pid, ours)
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._read(child))

    def _run_worker(self, index: int, channel: socket.socket) -> int:
        """Run a worker until it ends, and return its exit code. The new process calls this after the fork.

        Args:
            index: the number of the worker.
            channel: the worker's end of the pair of sockets.
        """
        self._signals.restore()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        address = self._connections.address
        self._connections.close_in_worker()
        self._selector.close()
        for child in self._children:
            child.channel.close()
        try:
            link = WorkerLink(channel, address)
            worker = Worker(index, len(self._slots), self._directory, link)
            return run(lambda: self._make(replace(self._options, worker=worker)), link)
        except click.ClickException as error:
            error.show()
            return error.exit_code
        except BaseException:
            log.exception("worker %d ended", index)
            return 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()

    def _reap(self) -> None:
        for slot in self._slots:
            child = slot.child
            if child is None or (code := child.exit_code()) is None:
                continue
            slot.child = None
            self._forget(child)
            if not self._stopping:
                self._on_end(slot, child, code)

    def _forget(self, child: Child) -> None:
        if child.channel in self._selector.get_map():
            self._selector.unregister(child.channel)
        child.channel.close()

    def _on_end(self, slot: _Slot, child: Child, code: int) -> None:
        """Schedule the replacement of a worker that has ended.

        If no worker is ready and the attempts to start one are used up, stop the server instead.

        Args:
            slot: the position of the worker.
            child: the process that has ended.
            code: its exit code, negative for a signal.
        """
        now = time.monotonic()
        if child.ready_at is None:
            self._failures += 1
        stable = child.ready_at is not None and (code == 0 or now - child.ready_at > _STABLE_SECONDS)
        slot.failures = 0 if stable else slot.failures + 1
        backoff = min(_FIRST_BACKOFF * 2 ** (slot.failures - 1), _LONGEST_BACKOFF) if slot.failures else 0.0
        slot.due = now + backoff
        log.log(
            logging.ERROR if code else logging.INFO,
            "worker %d (process %d) ended with %d; the next one starts in %g s",
            slot.index,
            child.pid,
            code,
            backoff,
        )
        if any(other.state is State.READY for other in self._children):
            return
        attempts = _START_ATTEMPTS * len(self._slots) if self._announced else 1
        if self._failures >= attempts:
            self._stop(code if code > 0 else 1)

    def _stop(self, exit_code: int) -> None:
        """Tell all workers to shut down. The supervisor then ends with `exit_code`."""
        self._stopping = True
        self._exit_code = exit_code
        self._manager.stopping()
        for child in self._children:
            child.send(messages.STOP)

    # --- the watchdog

    def _kill_unresponsive(self) -> None:
        """Kill workers that have not reported for as long as the service manager's watchdog permits.

        Their event loops are blocked. Do nothing if the watchdog is disabled.
        """
        limit = 2 * self._manager.interval
        if not limit:
            return
        for slot in self._slots:
            child = slot.child
            if child is not None and child.state is not State.STARTING and time.monotonic() - child.heard > limit:
                log.error("worker %d (process %d) does not respond and is killed", slot.index, child.pid)
                child.kill(signal.SIGKILL)

    def _send_heartbeat(self) -> None:
        if self._manager.interval and self._announced and time.monotonic() >= self._heartbeat_due:
            self._manager.heartbeat()
            self._heartbeat_due = time.monotonic() + self._manager.interval
