"""Send the cases to a server, and measure the cost of each for other users."""

from __future__ import annotations

import asyncio
import contextlib
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from stall.case import WAITS, Case
from stall.client import Client
from stall.worlds import World

GROWTH: Final = 5_000_000
"""Bytes that a request may leave behind."""
EXPONENT: Final = 1.4
"""Power of the size with which CPU time may grow, between the smallest size that takes a while and the largest. n log n
has about 1.1.
"""
WORTH: Final = 0.25
"""Seconds of CPU time at the largest size below which growth is not judged."""
_TOO_LARGE: Final = (413, 414, 431)
_REPEATED: Final = 3
"""How often a wait is measured again that no event loop explains."""
_FURTHER: Final = 10
"""Further requests by which a request that seems to leave memory behind is judged."""
_ROUNDS: Final = 3
"""How often so many further requests are sent, until a round leaves little behind."""
_REST: Final = 0.5
"""Seconds in which an idle server uses less than a fifth of a CPU."""
_LONGEST_REST: Final = 120.0
LEAST: Final = 0.03
"""Seconds of CPU time from which a size counts for the growth."""


@dataclass(slots=True)
class Sample:
    """One size of a case, in seconds and bytes.

    Attributes:
        caused: the longest step or lag of an event loop, in CPU time.
        where: the process with that step or lag.
        waited: the longest wait of the probe.
        peak: how much the memory of the processes grew at most while the request was handled.
    """

    n: int
    size: int
    status: int
    seconds: float
    cpu: float
    caused: float
    waited: float
    peak: float = 0.0
    where: str = ""
    answer: bytes = b""


@dataclass(slots=True)
class Result:
    case: str
    who: str
    samples: list[Sample] = field(default_factory=list)
    """From the largest size to the smallest."""
    grown: float = 0.0

    @property
    def largest(self) -> Sample:
        """Return the largest size that the server did not reject as too large; the smallest one if it rejected all."""
        return next((sample for sample in self.samples if sample.status not in _TOO_LARGE), self.samples[-1])

    @property
    def wait(self) -> float:
        return max(max(sample.caused, sample.waited) for sample in self.samples)

    @property
    def exponent(self) -> float:
        """Return the power of the size with which CPU time grows; 0 if it never takes long."""
        counted = [sample for sample in self.samples if sample.cpu >= LEAST and sample.status not in _TOO_LARGE]
        if len(counted) < 2 or counted[0].cpu < WORTH:
            return 0.0
        last, first = counted[0], counted[-1]
        return math.log(last.cpu / first.cpu) / math.log(last.n / first.n)

    def failures(self) -> list[str]:
        """Return why the case fails; nothing if it passes."""
        if self.who == "admin":
            return []
        found = []
        if self.wait > WAITS[self.who]:
            found.append(f"waits of {self.wait * 1000:.0f} ms")
        if self.exponent > EXPONENT:
            found.append(f"CPU time grows as n^{self.exponent:.1f}")
        if self.grown > GROWTH:
            found.append(f"{self.grown / 1e6:.0f} MB of memory kept")
        return found


class Probe:
    """The process of `stall.probe`."""

    def __init__(self, world: World, *, http2: bool = False) -> None:
        argv = [
            sys.executable,
            "-m",
            "stall.probe",
            world.url,
            str(world.ca),
            "probe-token",
            "2" if http2 else "1.1",
            *map(str, world.pids.values()),
        ]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def period(self) -> dict[str, float]:
        """Return the longest wait since the last call, by each clock (stall.probe)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        found: dict[str, float] = orjson.loads(self._process.stdout.readline())
        return found

    def end(self) -> None:
        self._process.terminate()
        self._process.communicate()


class Measuring:
    """Measures cases on one server.

    Args:
        clock: `wall` or `cpu`, by which the probe's waits are judged (stall.probe).
        http2: whether the users of the cases send over HTTP/2.
    """

    def __init__(
        self, world: World, probe: Probe | None, doublings: int = 4, clock: str = "wall", *, http2: bool = False
    ) -> None:
        self.world, self.probe, self._doublings, self._clock = world, probe, doublings, clock
        self.admin = Client(world.url, str(world.ca), "admin-token")
        self._clients = {
            who: Client(world.url, str(world.ca), f"{who}-token" if who != "anonymous" else "", http2=http2)
            for who in WAITS
        }

    async def case(self, case: Case) -> Result:
        """Send all sizes of a case: the largest first, halved until the server accepts it, and then as many halves as
        are measured.
        """
        result = Result(case.name, case.who)
        before = await self._memory()
        left, n = self._doublings, case.largest()
        while True:
            sample = await self._surely(case, n)
            result.samples.append(sample)
            if sample.status not in _TOO_LARGE:
                left -= 1
            if left < 0 or n == 1:
                break
            n = max(1, n // 2)
        result.grown = await self._memory() - before
        if result.grown > GROWTH and case.who != "admin":
            result.grown = await self._grown_further(case, result.largest.n)
        return result

    async def _grown_further(self, case: Case, n: int) -> float:
        """Return the bytes that each of several further requests leaves behind.

        The first requests fill caches and malloc's pools, which stay. A leak grows with each further request, in every
        round. The objects that the preparation stores are not counted.
        """
        if case.prepare is not None:
            await case.prepare(self.admin, n)
        rounds = []
        for _ in range(_ROUNDS):
            before = await self._memory()
            for _ in range(_FURTHER):
                await self.sample(case, n, prepare=False)
            rounds.append((await self._memory() - before) / _FURTHER)
            if rounds[-1] <= GROWTH:
                break
        return min(rounds)

    async def _surely(self, case: Case, n: int) -> Sample:
        """Send one size of a case.

        A wait that no event loop explains is measured again: on a busy host others may have caused it.
        """
        sample = await self.sample(case, n)
        for _ in range(_REPEATED):
            if sample.caused > WAITS[case.who] or sample.waited <= WAITS[case.who]:
                break
            again = await self.sample(case, n)
            sample.waited = min(sample.waited, again.waited)
            sample.caused = max(sample.caused, again.caused)
        return sample

    async def sample(self, case: Case, n: int, *, prepare: bool = True) -> Sample:
        """Send one size of a case once. `prepare`: whether an administrator prepares the server for it."""
        if prepare and case.prepare is not None:
            await case.prepare(self.admin, n)
        messages = case.messages(n)
        started = self.world.control("reset")
        if self.probe is not None:
            self.probe.period()
        cpu = self.world.cpu()
        began = time.monotonic()
        outcome = await self._clients[case.who].send(messages)
        await asyncio.sleep(0.05)
        if not outcome.status:
            await self._quiet()
        seconds = time.monotonic() - began
        used = self.world.cpu() - cpu
        measured = self.world.control("read")
        caused, where = max((max(one["step"], one["cpu"]), name) for name, one in measured.items())
        waited = self.probe.period()[self._clock] if self.probe is not None else 0.0
        peak = sum(one["peak"] - started[name]["rss"] for name, one in measured.items())
        size = max(message.size() for message in messages)
        return Sample(n, size, outcome.status, seconds, used, caused, waited, peak, where, outcome.body)

    async def _quiet(self) -> None:
        """Wait until the server has ended its work for clients that did not wait for it."""
        deadline = time.monotonic() + _LONGEST_REST
        cpu = self.world.cpu()
        while time.monotonic() < deadline:
            await asyncio.sleep(_REST)
            before, cpu = cpu, self.world.cpu()
            if cpu - before < _REST / 5:
                break

    async def _memory(self) -> float:
        """Return the memory of all processes after garbage collection, whose time must not count for the next
        request.
        """
        total = sum(one["rss"] for one in self.world.control("collect").values())
        await asyncio.sleep(0.05)
        return total


@contextlib.contextmanager
def probing(world: World, *, http2: bool = False) -> Iterator[Probe]:
    """Run the probe beside the server."""
    probe = Probe(world, http2=http2)
    try:
        yield probe
    finally:
        probe.end()


def failed(results: Sequence[Result]) -> list[Result]:
    """Return the results of cases that fail."""
    return [result for result in results if result.failures()]
