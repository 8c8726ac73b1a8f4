"""A run: the load of a cluster of N nodes against one server, measured by its clients and by its own metrics."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.client import Client
from bench.targets import TOKEN, Target
from scale import generator, slis
from scale.forms import node_tokens
from scale.results import WRITTEN, Latency, Percentiles, Run, python_of
from scale.usage import Sampler
from upstream.workspace import commit

POD_SECONDS: Final = 10
_OF_WATCHES: Final = frozenset({"WATCH", "WATCHLIST", "CONNECT"})


@dataclass(frozen=True)
class Size:
    """How large a cluster is, and how long it is measured.

    Attributes:
        churn: pods created a second, and as many deleted.
        seconds: the length of the measured part.
    """

    nodes: int
    pods_per_node: int = 30
    churn: float = 10.0
    seconds: float = 300.0


def in_proportion(nodes: int, seconds: float) -> Size:
    """Return the size of a cluster in which each node gets a new pod in `POD_SECONDS`, and loses one."""
    return Size(nodes, churn=nodes / POD_SECONDS, seconds=seconds)


def run(key: str, target: Target, size: Size, directory: Path, further: list[str]) -> Run:
    """Start a server with an empty store, fill it, load it, and return what was measured.

    Args:
        key: the name of the server in `FORMS`.
        directory: for the files of the load generator.
        further: further flags of the load generator.

    Raises:
        LoadFailed: the load generator gave up.
        NotStarted: the server did not start.
    """
    client = Client(target.url, TOKEN)
    with loaded(target, size, directory, further) as (load, out):
        load.wait_for("begin")
        before = slis.read(_metrics(client))
        with Sampler(target.pids) as server, Sampler(target.store_pids) as store:
            load.wait_for("end")
        after = slis.read(_metrics(client))
        load.finish()
    result = json.loads(out.read_text())
    return Run(
        form=key,
        nodes=size.nodes,
        pods=size.nodes * size.pods_per_node,
        churn=size.churn,
        seconds=size.seconds,
        filled=result["fill"]["seconds"],
        commit=commit(WRITTEN),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        cores=os.cpu_count() or 1,
        watches=sum(group["open"] for group in result["watches"].values()),
        rate=result["steady"]["requests_per_second"],
        lag_ms=result["steady"]["lag"]["p99_ms"],
        skipped=result["steady"]["skipped"] + result["steady"]["unfinished"],
        relists=sum(group["relists"] for group in result["watches"].values()),
        undelivered=result["steady"]["undelivered"],
        client=[_client(row) for row in result["requests"] if row["verb"] not in _OF_WATCHES],
        server=[_server(call, buckets) for call, buckets in sorted(slis.between(before, after).items())],
        delivery=_percentiles(result["delivery"]["kubelet_from_sent"]),
        startup=_percentiles(result["pod_startup"]),
        use=server.used(),
        store=store.used() if target.store_pids else None,
        load_cpu=result["generator"]["cpu_seconds"] / result["steady"]["seconds"],
        load_memory=result["generator"]["max_rss_bytes"],
        python=python_of(key),
    )


@contextmanager
def loaded(
    target: Target, size: Size, directory: Path, further: list[str]
) -> Iterator[tuple[generator.Generator, Path]]:
    """Start a server with an empty store and the load of a cluster, and yield the load generator and its result's file.

    Raises:
        NotStarted: the server did not start.
    """
    kubelets = node_tokens(size.nodes)
    target.users = [f'{token},{user},{user},"system:nodes"' for token, user in kubelets]
    target.fresh()
    target.start()
    tokens, out = directory / "node-tokens", directory / "result.json"
    tokens.write_text("".join(f"{token},{user}\n" for token, user in kubelets))
    flags: list[str | Path] = ["--nodes", str(size.nodes), "--pods-per-node", str(size.pods_per_node)]
    flags += ["--churn", str(size.churn), "--duration", f"{size.seconds:g}s", "--node-tokens", tokens, "--out", out]
    with generator.running(target.url, "cluster", [*flags, *further]) as load:
        yield load, out


def _metrics(client: Client) -> str:
    return asyncio.run(client.request("GET", "/metrics")).body.decode()


def _client(row: dict[str, Any]) -> Latency:
    names = ("group", "resource", "subresource", "verb", "scope", "count", "p50_ms", "p99_ms", "max_ms")
    errors = {
        error: count for error, count in row.get("errors", {}).items() if error == "429" or not error.startswith("4")
    }
    return Latency(**{name: row[name] for name in names}, failed=sum(errors.values()))


def _server(call: slis.Call, buckets: slis.Buckets) -> Latency:
    p50, p99 = (slis.percentile(buckets, share) * 1000 for share in (0.5, 0.99))
    return Latency(**vars(call), count=round(max(buckets.values())), p50_ms=p50, p99_ms=p99)


def _percentiles(summary: dict[str, Any]) -> Percentiles | None:
    if not summary["count"]:
        return None
    return Percentiles(**{name: summary[name] for name in ("count", "p50_ms", "p99_ms", "max_ms")})
