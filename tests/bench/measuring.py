"""Measures one target: starts it, fills it, drives it, and says for each figure what it is or why there is none."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bench import flood, objects, processes, watchers, wrk
from bench.asgi import Asgi
from bench.client import Client, Refused
from bench.definitions import CRDS, Definitions
from bench.targets import TOKEN, NotStarted, Target
from bench.works import WORKS, Work

MB = 1_000_000


@dataclass(frozen=True)
class Rate:
    """A work's figures: requests a second, latencies, CPU seconds of one request, and the same in multiples of `hello`."""

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu: float
    hello: float
    failed: int = 0

    @property
    def multiple(self) -> float:
        return self.cpu / self.hello


@dataclass(frozen=True)
class Share:
    """CPU of a request, of what another server needs for it: the median of pairs, and where half of them lie."""

    median: float
    low: float
    high: float
    ours: float
    theirs: float
    """Seconds, medians."""


@dataclass
class Measured:
    """All that is known of a target. `missing` says why a figure is not there."""

    title: str
    rates: dict[str, Rate] = field(default_factory=dict)
    beside: dict[str, Share] = field(default_factory=dict)
    """By work, of kube-apiserver's."""
    quantities: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """How much is done: `only` names works and quantities (empty: all)."""

    only: frozenset[str] = frozenset()
    pods: int = 10_000
    crds: int = 2_000
    seconds: float = 1
    rounds: int = 3
    """The one in the middle, by multiples of `hello`, counts."""
    events: int = 200
    pairs: int = 10
    """Beside another server."""

    def wants(self, *keys: str) -> bool:
        return not self.only or any(key.split("-")[0] in self.only or key in self.only for key in keys)


class Measuring:
    def __init__(self, target: Target, plan: Plan, servers: tuple[Asgi, Asgi], ca: Path, directory: Path) -> None:
        """`servers` are `hello` and the aggregated one, which `ca` signed."""
        self.target = target
        self.plan = plan
        self.result = Measured(target.title)
        self._hello, self._aggregated = servers
        self._ca = ca
        self._directory = directory
        self._numbers = itertools.count(0, 10_000_000)
        self._hello_now = 0.0
        self._hello_at = -1e9

    @property
    def client(self) -> Client:
        return Client(self.target.url, TOKEN)

    def begin(self) -> None:
        """The target is up, and filled."""
        self._starts()
        self._prepare()
        self._pods()

    def run(self) -> Measured:
        try:
            self.begin()
            for work in WORKS:
                if self.plan.wants(work.key):
                    self._guarded(work.key, partial(self._work, work))
            if self.plan.wants("flood"):
                self._guarded("flood", self._flood)
            self.target.stop()
            if self.plan.wants("crd"):
                self._guarded("crd", self._crds)
        except (NotStarted, Refused, OSError, subprocess.SubprocessError) as error:
            self.result.missing["*"] = str(error)
            _say(f"{self.target.title}: {error}")
        finally:
            self.target.close()
        return self.result

    def _guarded(self, key: str, measure: Callable[[], None]) -> None:
        try:
            measure()
        except (Refused, NotStarted, OSError, TimeoutError, subprocess.SubprocessError, asyncio.IncompleteReadError) as error:
            self.result.missing[key] = str(error) or type(error).__name__
            _say(f"  {key}: not measured: {self.result.missing[key]}")

    def _put(self, key: str, value: float) -> None:
        self.result.quantities[key] = value
        _say(f"  {key}: {value:.3g}")

    # --- what is no rate

    def _starts(self) -> None:
        _say(self.target.title)
        self.target.fresh()
        seconds = self.target.start()
        if self.plan.wants("start"):
            self._put("start-first", seconds)
            processes.settle(self.target.pids)
            self.target.stop()
            self._put("start-second", self.target.start())
        if self.plan.wants("idle"):
            processes.settle(self.target.pids)
            sizes = {name: processes.resident(process.pid) for name, process in self.target.processes.items()}
            self._put("idle", sum(sizes.values()) / MB)
            if len(sizes) > 1:
                for name, size in sizes.items():
                    self._put(f"idle-{name}", size / MB)

    def _prepare(self) -> None:
        async def prepare() -> None:
            client = self.client
            for name in (objects.NAMESPACE, objects.LISTED, objects.WATCHED):
                await client.create("/api/v1/namespaces", objects.namespace(name))
                await client.create(f"/api/v1/namespaces/{name}/serviceaccounts", objects.service_account("default"))
            await client.create(f"/api/v1/namespaces/{objects.NAMESPACE}/configmaps", objects.config_map("one"))
            if self.plan.wants("custom-create", "custom-patch"):
                await client.create(CRDS, objects.ruled_crd())
                await self._custom_objects(client)

        asyncio.run(prepare())

    async def _custom_objects(self, client: Client) -> None:
        """Those that are patched; their definition may take a moment until it is served."""
        path = f"/apis/{objects.RULED_GROUP}/v1/namespaces/{objects.NAMESPACE}/ruled"
        deadline = time.monotonic() + 20
        while (answer := await client.request("GET", path)).status != 200:
            if time.monotonic() > deadline:
                raise Refused(f"GET {path}: {answer.status} {answer.body[:300].decode(errors='replace')}")
            await asyncio.sleep(0.05)
        await client.create_all(path, (objects.ruled(f"one-{i}") for i in range(objects.RULED)))

    def _pods(self) -> None:
        if not self.plan.wants("list", "list-cached", "page", "selector", "table", "pods", "peak"):
            return
        path = f"/api/v1/namespaces/{objects.LISTED}/pods"
        begun = time.monotonic()
        asyncio.run(self.client.create_all(path, objects.pods(self.plan.pods)))
        _say(f"  {self.plan.pods} pods in {time.monotonic() - begun:.1f} s")
        processes.settle(self.target.pids)
        if self.plan.wants("pods"):
            self._put("pods", sum(map(processes.resident, self.target.pids)) / MB)
        if self.plan.wants("peak"):
            self._guarded("peak", lambda: self._peak(path))

    def _peak(self, path: str) -> None:
        """Of the largest process, while 20 connections list everything."""
        for pid in self.target.pids:
            processes.reset_peak(pid)
        figures = wrk.run(self.target.url, TOKEN, wrk.Load(path), 3, self._directory, connections=20)
        if not figures.bytes or figures.failed:
            raise Refused(f"{figures.failed} of the lists were refused")
        self._put("peak", max(map(processes.peak_resident, self.target.pids)) / MB)

    def _flood(self) -> None:
        asyncio.run(flood.prepare(self.client))
        flood.measure(self.target.url, self._directory, self.plan.rounds + 2, self._put, _say)

    def _crds(self) -> None:
        """In a server of its own: memory that other work has left free would hide it."""
        self.target.fresh()
        Definitions(self.target, self.plan.crds, self._directory, self._put).measure()

    # --- rates

    def _calibrate(self) -> float:
        """What `hello` costs now; a figure is good for a few seconds."""
        if time.monotonic() - self._hello_at > 3:
            self._hello_now = self._hello.cpu_of_hello()
            self._hello_at = time.monotonic()
        return self._hello_now

    def _work(self, work: Work) -> None:
        once = self.ready_for(work)
        rounds = []
        for _ in range(self.plan.rounds):
            before = self._calibrate()
            rate = once()
            rounds.append(replace(rate, hello=(before + self._hello_after()) / 2))
        rounds.sort(key=lambda rate: rate.multiple)
        self._put_rate(work.key, rounds[len(rounds) // 2])

    def ready_for(self, work: Work) -> Callable[[], Rate]:
        """What measures it once, for a second or a few; it has been done before. The rate knows no `hello` yet."""
        if work.key == "watch":
            return self._watch
        if work.key == "proxy":
            asyncio.run(self._register())
        assert work.load is not None
        size = self._answer_size(work.load) if work.heavy else 0
        if not work.heavy:
            self._load(work.load, 1, 0)
        return partial(self._load, work.load, self.plan.seconds * (3 if work.heavy else 1), size)

    def _load(self, load: wrk.Load, seconds: float, size: int) -> Rate:
        """Requests are counted by the bytes of their answers where `size` is that of one."""
        cpu = processes.cpu_of(self.target.pids)
        figures = wrk.run(self.target.url, TOKEN, load, seconds, self._directory, start=next(self._numbers))
        cpu = processes.cpu_of(self.target.pids) - cpu
        done = figures.bytes / size if size else figures.requests - figures.failed
        if not done:
            raise Refused(f"no answer but refusals ({figures.failed} by status, {figures.broken} broken)")
        return Rate(done / figures.seconds, figures.p50_ms, figures.p99_ms, cpu / done, 0.0, figures.failed + figures.broken)

    def _put_rate(self, key: str, rate: Rate) -> None:
        self.result.rates[key] = rate
        failed = f"  FAILED {rate.failed}" if rate.failed else ""
        _say(
            f"  {key}: {rate.per_second:,.0f}/s  p50 {rate.p50_ms:.2f}  p99 {rate.p99_ms:.2f} ms  "
            f"{rate.cpu * 1e6:,.1f} µs  {rate.multiple:,.3g} × hello ({rate.hello * 1e6:.0f} µs){failed}"
        )

    def _hello_after(self) -> float:
        self._hello_at = -1e9
        return self._calibrate()

    def _answer_size(self, load: wrk.Load) -> int:
        answer = asyncio.run(self.client.request("GET", load.path))
        if answer.status != 200:
            raise Refused(f"GET {load.path}: {answer.status} {answer.body[:200].decode(errors='replace')}")
        return len(answer.body)

    def _watch(self) -> Rate:
        found = asyncio.run(watchers.measure(self.client, self.target.pids, self.plan.events))
        return Rate(found.rate, found.p50_ms, found.p99_ms, found.cpu, 0.0)

    async def _register(self) -> None:
        """An aggregated server behind an ExternalName service; returns once requests reach it."""
        client = self.client
        await client.create(f"/api/v1/namespaces/{objects.NAMESPACE}/services", objects.external_service())
        await client.create("/apis/apiregistration.k8s.io/v1/apiservices", objects.api_service(self._aggregated.port, self._ca))
        deadline = time.monotonic() + 20
        while True:
            answer = await client.request("GET", f"/apis/{objects.GROUP}/v1/things/one")
            if answer.status == 200:
                return
            if time.monotonic() > deadline:
                raise Refused(f"the aggregated server is not reached: {answer.status} {answer.body[:200].decode(errors='replace')}")
            await asyncio.sleep(0.1)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
