"""One run: clients send requests, faults are injected one after the other, recovery is measured by requests, and the
history is checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
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
from chaos.http2 import over_http2
from chaos.kinds import KINDS, NAMESPACE, WIDGETS, WIDGETS_DEFINITION, Kind
from chaos.watchers import Watcher
from chaos.worlds import World

WORKERS: Final = 8
WATCHERS: Final = 2
MANY: Final = 10
"""Up to this number of watchers of a kind, each watch lasts 5 to 20 seconds; with more watchers, 5 to 10 minutes, as
clients do.
"""
PAUSE: Final = 2.0  # the default pause between two faults, in seconds
TOGETHER: Final = 50  # watchers that connect at the same time
TIMEOUT: Final = 120.0  # for a recovery, in seconds


@dataclass
class Round:
    """One fault with its longest time without an acknowledged write, by kind, and the time to recover."""

    what: str
    began: float
    healed: float = 0.0
    recovered: float = 0.0
    write_outage: dict[str, float] = field(default_factory=dict)


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
    """A run.

    Args:
        workers: the number of clients that write and read.
        watchers: the number of watchers of each kind. Each replica of a service is also read and watched directly.
        http2: whether all clients share the connections to each server, over HTTP/2. Otherwise each has one of its own.
    """

    def __init__(
        self,
        world: World,
        seed: int,
        pause: float = PAUSE,
        workers: int = WORKERS,
        watchers: int = WATCHERS,
        *,
        http2: bool = False,
    ) -> None:
        self.history = History()
        self.rounds: list[Round] = []
        self._world = world
        version = over_http2 if http2 else _over_http1
        self._addresses = [version(address) for address in world.addresses]
        self._replicas = {kind.name: [version(address) for address in world.replicas(kind)] for kind in KINDS}
        self._seed = seed
        self._pause = pause
        self._workers = workers
        lasts = (5, 20) if watchers <= MANY else (300, 600)
        self._watchers = [
            Watcher(
                f"watcher-{kind.name}-{number}",
                kind,
                addresses,
                self.history,
                seed,
                streams=number % 2 == 1,
                lasts=lasts,
            )
            for kind in KINDS
            for addresses in [(*self._addresses, *self._replicas[kind.name])]
            for number in range(watchers)
        ]

    async def through(self, faults: Sequence[Fault], seconds: float = 0, operations: int = 0) -> Result:
        """Inject all faults in turn, each at least once, and repeat until the time is over and enough operations were
        done.
        """
        try:
            return await self._through(faults, seconds, operations)
        finally:
            for address in itertools.chain(self._addresses, *self._replicas.values()):
                if address.shared is not None:
                    address.shared.close()

    async def _through(self, faults: Sequence[Fault], seconds: float, operations: int) -> Result:
        begun = self.history.clock()
        async with running(self._world.witness.work()) if self._world.witness else contextlib.nullcontext():
            await _prepare(self._addresses[0])
            async with self._watching():
                async with running(*(client.work() for client in self._clients())):
                    await self._recovered()
                    turn = 0
                    while (
                        turn < len(faults)
                        or self.history.clock() < begun + seconds
                        or len(self.history.operations) < operations
                    ):
                        await asyncio.sleep(self._pause)
                        await self._round(faults[turn % len(faults)])
                        turn += 1
                    await asyncio.sleep(self._pause)
                await self._watchers_have_seen_all()
            truth = await self._world.truth()
        violations = check(self.history, truth)
        relists = [watcher.relists for watcher in self._watchers]
        seconds = self.history.clock() - begun
        return Result(self.history, self.rounds, violations, len(self._watchers), sum(relists), max(relists), seconds)

    def _clients(self) -> Iterator[Reader]:
        for number in range(self._workers):
            yield Worker(f"worker-{number}", self._addresses, self.history, self._seed)
        for kind in KINDS:
            for number, replica in enumerate(self._replicas[kind.name]):
                yield Reader(f"reader-{kind.name}-{number}", [replica], self.history, self._seed, [kind])

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        """Connect all watchers, in groups because TLS handshakes take time."""
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
        this.write_outage = {kind.name: self._write_outage(kind, began, this.recovered) for kind in KINDS}
        self.rounds.append(this)

    async def _recovered(self) -> None:
        """Wait until a write and a consistent read of each kind succeed through the aggregator."""
        async with asyncio.timeout(TIMEOUT):
            await asyncio.gather(*(self._works(kind) for kind in KINDS))

    async def _works(self, kind: Kind) -> None:
        probe = Client(
            f"probe-{kind.name}-{len(self.rounds)}-{self.history.clock():.0f}", self._addresses, self.history, timeout=2
        )
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

    def _write_outage(self, kind: Kind, first: float, last: float) -> float:
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
        """Write each kind a last time, and wait until each watcher has received it."""
        for kind in KINDS:
            client = Client(f"last-{kind.name}", self._addresses, self.history)
            try:
                written = await client.create(kind, "last")
                assert written.outcome is Outcome.DONE, written
                await client.list(kind)
            finally:
                client.close()
            async with asyncio.timeout(60):
                await asyncio.gather(
                    *(watcher.until(written.revision) for watcher in self._watchers if watcher.kind is kind)
                )


def _over_http1(address: Address) -> Address:
    return address


@asynccontextmanager
async def running(*work: Awaitable[None]) -> AsyncIterator[None]:
    """Run tasks until the end, and raise the error of one that fails."""
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
    """Create the namespace and the definition of the widgets."""
    await ensure_namespace(address)
    connection = Connection(address)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await _until(connection, "POST", definitions, WIDGETS_DEFINITION, lambda status: status in (201, 409))
    await _until(connection, "GET", WIDGETS.collection, None, lambda status: status == 200)
    connection.close()


async def ensure_namespace(address: Address) -> None:
    connection = Connection(address)
    await _until(
        connection, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, lambda status: status in (201, 409)
    )
    connection.close()


async def _until(connection: Connection, method: str, path: str, body: Any, good: Callable[[int], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while True:
            with contextlib.suppress(NotSent, NoAnswer):
                if good((await connection.ask(method, path, body)).status):
                    return
            await asyncio.sleep(0.05)
