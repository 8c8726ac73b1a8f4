"""`LoopMonitor`: measures the steps of the event loop and the lag of the loop's timers.

It measures how long each step takes, which request the step works for, and how late the timers run. A step is what runs
between two returns to the event loop. While it runs, every other request of the process waits. The monitor reports
three things:

- It reports the longest step of each request, in CPU time of the loop's thread. A busy host thus does not look like a
  slow request.
- It reports the lag of the loop. The lag includes background tasks and threads that hold Python's interpreter lock.
- It logs a warning if a step or a lag exceeds a threshold. The warning names the request of the step, or the requests
  that were in flight during the lag.

Measured: 0.5 µs for each step of a request. The timer that measures the lag runs only while requests are served.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterable
from itertools import islice
from typing import Any, Final

from tetrapod.generic.http.request import Request
from tetrapod.generic.metrics.counters import GaugeFunction
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.registry import RESETS

log = logging.getLogger(__name__)

TICK: Final = 0.01
"""Seconds between two measurements of the lag. In a process that has nothing else to do, a hundred timers a second take
up to 1 % of a CPU.
"""
IDLE_TICKS: Final = 100
"""Ticks without a step of any request after which the lag is measured no longer."""
QUIET_TICKS: Final = 3
"""The same if no client waits for a response. The services poll each other twice a second."""
NOTICED: Final = 0.002
"""Seconds of wall time below which a step's CPU time is not read: the system call costs more than reading the clock."""
LEAST_INTERVAL: Final = 1.0
"""Seconds between two warnings of one kind."""
SHOWN_REQUESTS: Final = 3
"""The most requests in flight that the warning about a lag names."""
SHOWN: Final = 200
"""Characters of a path or a user agent that a warning shows."""
_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LEAST: Final = _BUCKETS[0]

STEP: Final = Histogram(
    "apiserver_event_loop_step_seconds",
    "The longest step of the event loop for each request, in seconds of CPU time.",
    (),
    _BUCKETS,
)
LAG: Final = Histogram(
    "apiserver_event_loop_lag_seconds",
    "How late timers of the event loop ran while requests were served, in seconds.",
    (),
    _BUCKETS,
)
_longest: Final = {"step": 0.0, "wall": 0.0, "cpu": 0.0}
GaugeFunction(
    "apiserver_event_loop_longest_step_seconds",
    "The longest step of the event loop for any request since metrics were reset, in seconds of CPU time.",
    (),
    lambda: [((), _longest["step"])],
)
GaugeFunction(
    "apiserver_event_loop_longest_lag_seconds",
    "The longest lag of the event loop since metrics were reset, in seconds; clock=cpu: only as much of it as the "
    "process caused.",
    ("clock",),
    lambda: [((clock,), _longest[clock]) for clock in ("wall", "cpu")],
)


def longest() -> dict[str, float]:
    """Return the longest step and the longest lags of event loops in this process since the metrics were reset.

    A lag is the time by which a timer of the event loop was called too late.

    Returns:
        Seconds by name: `step` is the CPU time of the longest step, `wall` is the longest lag, and `cpu` is the longest
            lag of which only the part counts that this process caused.
    """
    return dict(_longest)


def _reset() -> None:
    _longest.update(dict.fromkeys(_longest, 0.0))


RESETS.append(_reset)


class LoopMonitor:
    """The measurements of one event loop.

    Args:
        threshold: the seconds of CPU time from which on a step or a lag is logged; 0 to log none.
        in_flight: returns the requests in flight, which a warning about a lag names.

    Attributes:
        threshold: the argument of this name.
        stale: the time of `time.perf_counter` from which on `read_cpu_time` must be called before a step begins.
        last_reading: the time of the last call of `read_cpu_time`. It does not change while no request takes a step.
        awaited: the number of requests whose response a client waits for. Watches do not count once they have begun.
    """

    def __init__(self, threshold: float = 0.0, in_flight: Callable[[], Iterable[Request]] = tuple) -> None:
        self.threshold = threshold
        self._in_flight = in_flight
        self.stale = 0.0
        self._cpu = 0.0  # of the thread when `read_cpu_time` was called last
        self.last_reading = 0.0
        self.awaited = 0
        self._ticking = False
        self._row = STEP.row(())
        self._steps = _Warnings("Event loop blocked by a request")
        self._lags = _Warnings("Event loop delayed")

    def read_cpu_time(self, now: float) -> None:
        """Store the CPU time that the loop's thread has used so far. `step` subtracts it to measure a step.

        The stored value serves the steps that begin within `NOTICED` seconds from `now`, until `step` is called.
        Also start the timer that measures the lag of the loop, if it does not run.

        Args:
            now: the current time of `time.perf_counter`, in seconds.
        """
        self.last_reading = now
        self.stale = now + NOTICED
        self._cpu = time.thread_time()
        if not self._ticking:
            self._ticking = True
            _Ticks(self).schedule()

    @types.coroutine
    def measured(self, request: Request, work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
        """Await `work`, which handles `request`, measure each of its steps, and count the longest in the metrics."""
        clock = time.perf_counter
        longest = 0.0
        # A list that is emptied: a variable would form a reference cycle with the traceback of its error.
        failures: list[BaseException] = []
        self.awaited += 1
        try:
            while True:
                began = clock()
                if began >= self.stale:
                    self.read_cpu_time(began)
                try:
                    awaited = work.throw(failures.pop()) if failures else work.send(None)
                except StopIteration:
                    return
                finally:
                    took = clock() - began
                    if took > longest and (took < NOTICED or (took := self.step(took, request)) > longest):
                        longest = took
                try:
                    yield awaited
                except BaseException as error:
                    failures.append(error)
                    del awaited  # the error's traceback refers to this frame, and a failed future to the error
        finally:
            self.awaited -= 1
            if longest < _LEAST and STEP.native is None:
                row = self._row
                row[0] += 1
                row[-1] += longest
            else:
                STEP.count(self._row, longest)

    def step(self, wall: float, request: Request) -> float:
        """Return the CPU time of a step that has just ended. Log it if it reaches `threshold`.

        Args:
            wall: the seconds that the step took.
            request: the request that the step worked for.
        """
        took = min(time.thread_time() - self._cpu, wall)
        self.stale = 0.0
        _longest["step"] = max(_longest["step"], took)
        if self.threshold and took >= self.threshold:
            self._steps.warn(took, **_description(request))
        return took

    def tick(self, lag: float, cpu: float, delay: float = 0.0) -> None:
        """Count a lag of the loop in the metrics, and log it if the part that the process caused reaches `threshold`.

        Args:
            lag: the seconds by which a timer of the event loop was called too late.
            cpu: CPU time of the process in that time, all threads together.
            delay: seconds of that time for which the loop's thread was ready to run and the kernel ran something else.
        """
        caused = max(min(lag - delay, cpu), 0.0)
        LAG.observe((), lag)
        _longest["wall"] = max(_longest["wall"], lag)
        _longest["cpu"] = max(_longest["cpu"], caused)
        if self.threshold and caused >= self.threshold:
            waiting = (each for each in self._in_flight() if each.info is None or each.info.verb != "watch")
            listed = islice(waiting, SHOWN_REQUESTS)
            requests = "; ".join(f"{r.method} {r.raw_path[:SHOWN]} by {r.user.name[:SHOWN]}" for r in listed)
            self._lags.warn(caused, lag=round(lag, 3), requestsInFlight=requests)

    def ticks_ended(self) -> None:
        self._ticking = False
        self.stale = 0.0


class _Ticks:
    """The timer by which a `LoopMonitor` measures the lag of the loop.

    It runs every `TICK` seconds, and ends when no request has taken a step for IDLE_TICKS, or for QUIET_TICKS if no
    client waits for a response.
    """

    def __init__(self, monitor: LoopMonitor) -> None:
        self._monitor = monitor
        self._loop = asyncio.get_running_loop()
        self._idle = 0
        self._last_reading = 0.0
        self._run_delay = RunDelay()

    def schedule(self) -> None:
        self._cpu = time.process_time()
        self._delay = self._run_delay.seconds()
        self._expected = time.perf_counter() + TICK
        self._loop.call_later(TICK, self._measure)

    def _measure(self) -> None:
        monitor = self._monitor
        lag = time.perf_counter() - self._expected
        monitor.tick(max(lag, 0.0), time.process_time() - self._cpu, self._run_delay.seconds() - self._delay)
        self._idle = self._idle + 1 if monitor.last_reading == self._last_reading else 0
        self._last_reading = monitor.last_reading
        if self._idle < (IDLE_TICKS if monitor.awaited else QUIET_TICKS):
            self.schedule()
        else:
            self._run_delay.close()
            monitor.ticks_ended()


class RunDelay:
    """Measures how long the creating thread was ready to run while the kernel ran other threads.

    On a busy host most of a lag is such a delay, which no request caused. The result is 0 if the kernel does not count
    the delay. One reading takes 1.1 µs.
    """

    def __init__(self) -> None:
        try:
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._file = -1

    def seconds(self) -> float:
        """Return for how many seconds the creating thread has waited for a CPU in all, or 0.0 if it is not known.

        The caller may run in any thread. The difference of two results is the delay between the calls.
        """
        return int(os.pread(self._file, 64, 0).split()[1]) / 1e9 if self._file >= 0 else 0.0

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    __del__ = close  # a loop that is closed drops its timers


class _Warnings:
    """Logs warnings with one message, at most one in `LEAST_INTERVAL` seconds.

    Each warning says how many were omitted since the one before it.
    """

    def __init__(self, message: str) -> None:
        self._message = message
        self._next = 0.0
        self._omitted = 0

    def warn(self, seconds: float, **fields: object) -> None:
        now = time.monotonic()
        if now < self._next:
            self._omitted += 1
            return
        self._next = now + LEAST_INTERVAL
        if self._omitted:
            fields["omitted"], self._omitted = self._omitted, 0
        log.warning(self._message, extra={"seconds": round(seconds, 3), **fields})


def _description(request: Request) -> dict[str, object]:
    """Return the fields, by name, with which log lines describe a request; long texts are cut off."""
    fields: dict[str, object] = {
        "method": request.method[:SHOWN],
        "path": request.raw_path[:SHOWN],
        "user": request.user.name[:SHOWN],
        "userAgent": request.header(b"user-agent")[:SHOWN],
        "srcIP": request.remote,
    }
    if request.audit_id:
        fields["audit-ID"] = request.audit_id
    return fields
