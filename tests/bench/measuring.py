"""Measure one target: start it, create its objects, put load on it, and return for each figure its value or the reason
why it is missing.
"""

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

from bench import flood, h2load, objects, processes, watchers, wrk
from bench.asgi import Asgi
from bench.client import Client, Rejected
from bench.definitions import CRDS, Definitions
from bench.targets import TOKEN, NotStarted, Target
from bench.works import WORKS, Work

MB = 1_000_000


@dataclass(frozen=True)
class Rate:
    """The figures of a work: requests per second, latencies, CPU seconds per request, and those as multiples of
    `hello`.
    """

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
    """The CPU time of a request relative to that of another server: the median of pairs, and the interquartile
    range.
    """

    median: float
    low: float
    high: float
    ours: float
    theirs: float
    """CPU seconds per request, medians."""


@dataclass
class Measured:
    """All results of a target. `missing` gives the reasons for missing figures."""

    title: str
    rates: dict[str, Rate] = field(default_factory=dict)
    beside: dict[str, Share] = field(default_factory=dict)
    """By work, relative to kube-apiserver."""
    quantities: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The amount of work. `only` names works and quantities; if empty, all are measured."""

    only: frozenset[str] = frozenset()
    pods: int = 10_000
    crds: int = 2_000
    seconds: float = 1
    rounds: int = 3
    """Each work is measured this many times; the median by multiples of `hello` counts."""
    events: int = 200
    pairs: int = 10
    """The number of pairs of measurements when two servers are compared."""
    http2: bool = False
    """Whether the works are sent over HTTP/2, all on one connection."""
    h2load: bool = False
    """Whether h2load sends those without a body."""

    def wants(self, *keys: str) -> bool:
        return not self.only or any(key.split("-")[0] in self.only or key in self.only for key in keys)


class Measuring:
    def __init__(self, target: Target, plan: Plan, servers: tuple[Asgi, Asgi], ca: Path, directory: Path) -> None:
        """Measure a target.

        Args:
            servers: `hello` and the aggregated server, whose certificates `ca` signed.
        """
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
        """Start the target and create its objects."""
        self._starts()
        self._prepare()
        self._pods()

    def run(self) -> Measured:
        try:
            self.begin()
            for work in WORKS:
                if self.plan.wants(work.key):
                    self._guarded(work.key, partial(self._work, work))
            if self.plan.wants("flood", *flood.FLOODS, flood.STREAMS):
                self._guarded("flood", self._flood)
            self.target.stop()
            if self.plan.wants("crd"):
                self._guarded("crd", self._crds)
        except (NotStarted, Rejected, OSError, subprocess.SubprocessError) as error:
            self.result.missing["*"] = str(error)
            _say(f"{self.target.title}: {error}")
        finally:
            self.target.close()
        return self.result

    def _guarded(self, key: str, measure: Callable[[], None]) -> None:
        try:
            measure()
        except (
            Rejected,
            NotStarted,
            OSError,
            TimeoutError,
            subprocess.SubprocessError,
            asyncio.IncompleteReadError,
        ) as error:
            self.result.missing[key] = str(error) or type(error).__name__
            _say(f"  {key}: not measured: {self.result.missing[key]}")

    def _put(self, key: str, value: float) -> None:
        self.result.quantities[key] = value
        _say(f"  {key}: {value:.3g}")

    # --- figures that are not rates

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
                self._put("idle-together", processes.resident_together(self.target.pids) / MB)
                for name, size in sizes.items():
                    self._put(f"idle-{name}", size / MB)

    def _prepare(self) -> None:
        async def prepare() -> None:
            client = self.client
            for name in (objects.NAMESPACE, objects.LISTED, objects.WATCHED):
                await client.create("/api/v1/namespaces", objects.namespace(name))
                await client.create(f"/api/v1/namespaces/{name}/serviceaccounts", objects.service_account("default"))
            await client.create(f"/api/v1/namespaces/{objects.NAMESPACE}/configmaps", objects.config_map("one"))
            if self.plan.wants("status"):
                await client.create_all(
                    f"/api/v1/namespaces/{objects.NAMESPACE}/pods",
                    (objects.pod(f"status-{i}", 0) for i in range(objects.UPDATED)),
                )
            if self.plan.wants("slice"):
                await client.create_all(
                    f"/apis/discovery.k8s.io/v1/namespaces/{objects.NAMESPACE}/endpointslices",
                    (objects.endpoint_slice(f"slice-{i}", 10, "0") for i in range(objects.UPDATED)),
                )
            if self.plan.wants("custom-create", "custom-patch"):
                await client.create(CRDS, objects.ruled_crd())
                await self._custom_objects(client)

        asyncio.run(prepare())

    async def _custom_objects(self, client: Client) -> None:
        """Create the objects that are patched, retrying until their definition is served."""
        path = f"/apis/{objects.RULED_GROUP}/v1/namespaces/{objects.NAMESPACE}/ruled"
        deadline = time.monotonic() + 20
        while (answer := await client.request("GET", path)).status != 200:
            if time.monotonic() > deadline:
                raise Rejected(f"GET {path}: {answer.status} {answer.body[:300].decode(errors='replace')}")
            await asyncio.sleep(0.05)
        await client.create_all(path, (objects.ruled(f"one-{i}") for i in range(objects.RULED)))

    def _pods(self) -> None:
        if not self.plan.wants("list", "list-cached", "list-gzip", "page", "selector", "table", "pods", "peak"):
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
        """Return the memory of the largest process while 20 connections list everything."""
        for pid in self.target.pids:
            processes.reset_peak(pid)
        figures = wrk.run(self.target.url, TOKEN, wrk.Load(path), 3, self._directory, connections=20)
        if not figures.bytes or figures.failed:
            raise Rejected(f"{figures.failed} of the lists were rejected")
        self._put("peak", max(map(processes.peak_resident, self.target.pids)) / MB)

    def _flood(self) -> None:
        asyncio.run(flood.prepare(self.client))
        flood.measure(self.target.url, self._directory, self.plan.rounds + 2, self.plan.wants, self._put, _say)

    def _crds(self) -> None:
        """Measured on a separate server: memory freed by other work would hide it."""
        self.target.fresh()
        Definitions(self.target, self.plan.crds, self._directory, self._put).measure()

    # --- rates

    def _calibrate(self) -> float:
        """Return the cost of `hello`. A measurement is reused for a few seconds."""
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
        """Return the function that measures a work once, for one or a few seconds.

        Its first call has been made. The result has no `hello` yet.
        """
        if work.key == "watch":
            return self._watch
        if work.key == "proxy":
            asyncio.run(self.register())
        assert work.load is not None
        size = self._answer_size(work.load) if work.heavy else 0
        if not work.heavy:
            self._load(work.load, 1, 0)
        return partial(self._load, work.load, self.plan.seconds * (3 if work.heavy else 1), size)

    def _load(self, load: wrk.Load, seconds: float, size: int) -> Rate:
        """Measure a work with wrk, or over HTTP/2 with h2load if the plan says so, and else with http2load.

        Requests are counted by received bytes if `size` gives the bytes of one response.
        """
        run = wrk.run_http2 if self.plan.http2 else wrk.run
        if self.plan.h2load and not load.body:
            run = h2load.run
        cpu = processes.cpu_of(self.target.pids)
        figures = run(self.target.url, TOKEN, load, seconds, self._directory, start=next(self._numbers))
        cpu = processes.cpu_of(self.target.pids) - cpu
        done = figures.bytes / size if size else figures.requests - figures.failed
        if not done:
            raise Rejected(f"no answer but rejections ({figures.failed} by status, {figures.broken} broken)")
        return Rate(
            done / figures.seconds, figures.p50_ms, figures.p99_ms, cpu / done, 0.0, figures.failed + figures.broken
        )

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
        answer = asyncio.run(self.client.request("GET", load.path, encoding=load.encoding))
        if answer.status != 200:
            raise Rejected(f"GET {load.path}: {answer.status} {answer.body[:200].decode(errors='replace')}")
        return len(answer.body)

    def _watch(self) -> Rate:
        found = asyncio.run(watchers.measure(self.client, self.target.pids, self.plan.events))
        return Rate(found.rate, found.p50_ms, found.p99_ms, found.cpu, 0.0)

    async def register(self) -> None:
        """Create an aggregated server behind an ExternalName Service, and wait until requests reach it."""
        client = self.client
        await client.create(f"/api/v1/namespaces/{objects.NAMESPACE}/services", objects.external_service())
        await client.create(
            "/apis/apiregistration.k8s.io/v1/apiservices", objects.api_service(self._aggregated.port, self._ca)
        )
        deadline = time.monotonic() + 20
        while True:
            answer = await client.request("GET", f"/apis/{objects.GROUP}/v1/things/one")
            if answer.status == 200:
                return
            if time.monotonic() > deadline:
                raise Rejected(
                    f"the aggregated server is not reached: {answer.status} "
                    f"{answer.body[:200].decode(errors='replace')}"
                )
            await asyncio.sleep(0.1)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
