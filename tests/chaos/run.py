"""One run: clients at work, faults one after another, recovery measured from outside, and at the end the proof."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from chaos.checker import Violation, check
from chaos.clients import Client, Reader, Worker
from chaos.faults.base import Fault
from chaos.history import WRITES, History, Outcome
from chaos.http import Address, Connection, NoAnswer, NotSent
from chaos.kinds import KINDS, NAMESPACE, WIDGETS, WIDGETS_DEFINITION, Kind
from chaos.watchers import Watcher
from chaos.worlds import World

WORKERS: Final = 8
WATCHERS: Final = 2
MANY: Final = 10
"""Watchers of a kind; of more than that each keeps its watch, as clients do."""
CALM: Final = 2.0  # seconds between two faults, if nothing else is said
TOGETHER: Final = 50  # watchers that connect at the same time
TIMEOUT: Final = 120.0  # for a recovery


@dataclass
class Round:
    """One fault: what it was, the longest time from it to the recovery without an acknowledged write, by kind, and the time to recover."""

    what: str
    began: float
    healed: float = 0.0
    recovered: float = 0.0
    silence: dict[str, float] = field(default_factory=dict)


@dataclass
class Result:
    history: History
    rounds: list[Round]
    violations: list[Violation]
    watchers: int
    relists: int
    most_relists: int  # of one watcher
    seconds: float


class Run:
    """`workers` write and read; `watchers` of each kind look on. Where a service has replicas, each is read and watched directly too."""

    def __init__(self, world: World, seed: int, calm: float = CALM, workers: int = WORKERS, watchers: int = WATCHERS) -> None:
        self.history = History()
        self.rounds: list[Round] = []
        self._world = world
        self._doors = world.doors
        self._seed = seed
        self._calm = calm
        self._workers = workers
        lasts = (5, 20) if watchers <= MANY else (300, 600)
        self._watchers = [
            Watcher(f"watcher-{kind.name}-{number}", kind, doors, self.history, seed, streams=number % 2 == 1, lasts=lasts)
            for kind in KINDS
            for doors in [(*world.doors, *world.replicas(kind))]
            for number in range(watchers)
        ]

    async def through(self, faults: Sequence[Fault], seconds: float = 0, operations: int = 0) -> Result:
        """All the faults in turn, each at least once, and again until the time is up and so many operations have been done."""
        begun = self.history.clock()
        async with running(self._world.witness.work()) if self._world.witness else contextlib.nullcontext():
            await _prepare(self._doors[0])
            async with self._watching():
                async with running(*(client.work() for client in self._clients())):
                    await self._recovered()
                    turn = 0
                    while turn < len(faults) or self.history.clock() < begun + seconds or len(self.history.operations) < operations:
                        await asyncio.sleep(self._calm)
                        await self._round(faults[turn % len(faults)])
                        turn += 1
                    await asyncio.sleep(self._calm)
                await self._watchers_have_seen_all()
            truth = await self._world.truth()
        violations = check(self.history, truth)
        relists = [watcher.relists for watcher in self._watchers]
        seconds = self.history.clock() - begun
        return Result(self.history, self.rounds, violations, len(self._watchers), sum(relists), max(relists), seconds)

    def _clients(self) -> Iterator[Reader]:
        for number in range(self._workers):
            yield Worker(f"worker-{number}", self._doors, self.history, self._seed)
        for kind in KINDS:
            for number, replica in enumerate(self._world.replicas(kind)):
                yield Reader(f"reader-{kind.name}-{number}", [replica], self.history, self._seed, [kind])

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        """All watchers are there; they come in groups, since handshakes take time."""
        async with AsyncExitStack() as stack:
            for start in range(0, len(self._watchers), TOGETHER):
                group = self._watchers[start : start + TOGETHER]
                await stack.enter_async_context(running(*(watcher.work() for watcher in group)))
                await asyncio.gather(*(watcher.until(1) for watcher in group))
            yield

    async def _round(self, fault: Fault) -> None:
        began = self.history.clock()
        this = Round(await asyncio.to_thread(fault.inject), began)
        await asyncio.sleep(fault.hold)
        this.healed = self.history.clock()
        await asyncio.to_thread(fault.heal)
        await self._recovered()
        this.recovered = self.history.clock()
        this.silence = {kind.name: self._silence(kind, began, this.recovered) for kind in KINDS}
        self.rounds.append(this)

    async def _recovered(self) -> None:
        """Returns once a write and a consistent read of each kind succeed through the front door."""
        async with asyncio.timeout(TIMEOUT):
            await asyncio.gather(*(self._works(kind) for kind in KINDS))

    async def _works(self, kind: Kind) -> None:
        probe = Client(f"probe-{kind.name}-{len(self.rounds)}-{self.history.clock():.0f}", self._doors, self.history, timeout=2)
        name = f"probe-{len(self.rounds)}"
        try:
            while True:
                written = await probe.patch(kind, name)
                if written.status == 404:
                    written = await probe.create(kind, name)
                if written.outcome is Outcome.DONE and (await probe.get(kind, name)).outcome is Outcome.DONE:
                    return
                await asyncio.sleep(0.05)
        finally:
            probe.close()

    def _silence(self, kind: Kind, first: float, last: float) -> float:
        ends = [
            operation.ended
            for operation in self.history.operations
            if operation.kind == kind.name
            and operation.verb in WRITES
            and operation.outcome is Outcome.DONE
            and first < operation.ended < last
        ]
        moments = [first, *sorted(ends), last]
        return max(later - earlier for earlier, later in pairwise(moments))

    async def _watchers_have_seen_all(self) -> None:
        """A last write of each kind, of which each watcher must come to hear."""
        for kind in KINDS:
            client = Client(f"last-{kind.name}", self._doors, self.history)
            try:
                written = await client.create(kind, "last")
                assert written.outcome is Outcome.DONE, written
                await client.list(kind)
            finally:
                client.close()
            async with asyncio.timeout(60):
                await asyncio.gather(*(watcher.until(written.revision) for watcher in self._watchers if watcher.kind is kind))


@asynccontextmanager
async def running(*work: Awaitable[None]) -> AsyncIterator[None]:
    """Tasks that go on until the end; one that fails is heard of."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, Exception):
            raise outcome


async def _prepare(address: Address) -> None:
    """The namespace and the definition of the widgets."""
    await ensure_namespace(address)
    connection = Connection(address)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await _until(connection, "POST", definitions, WIDGETS_DEFINITION, lambda status: status in (201, 409))
    await _until(connection, "GET", WIDGETS.collection, None, lambda status: status == 200)
    connection.close()


async def ensure_namespace(address: Address) -> None:
    connection = Connection(address)
    await _until(connection, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, lambda status: status in (201, 409))
    connection.close()


async def _until(connection: Connection, method: str, path: str, body: Any, good: Callable[[int], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while True:
            with contextlib.suppress(NotSent, NoAnswer):
                if good((await connection.ask(method, path, body)).status):
                    return
            await asyncio.sleep(0.05)
