"""The workers of a server send each other their metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.metric import Metric
from tetrapod.generic.observability.exposition import text
from tetrapod.generic.observability.worker_metrics.exchange import PAGE, WorkerMetrics
from tetrapod.generic.observability.worker_metrics.families import decode, encode, read_families

REQUESTS = "requests_of_other_worker_total"


def metrics_of(value: float) -> bytes:
    metrics: list[Metric] = []
    Counter(REQUESTS, "Requests.", (), metrics).add((), value)
    return encode(read_families(metrics))


def lines(page: Iterable[Metric]) -> list[str]:
    return text.render(list(page)).decode().splitlines()


def test_incomplete_answer_of_a_worker_is_replaced_by_its_file(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(64)
        writer.write(metrics_of(9)[:-3])  # the worker is killed while it answers
        writer.close()

    async def run() -> None:
        (tmp_path / f"1.{PAGE}").write_bytes(metrics_of(7))
        async with await asyncio.start_unix_server(answer, tmp_path / "1.sock"):
            page = lines(await WorkerMetrics(tmp_path, 0, 2).page(PAGE, native_histograms=False))
        assert f"{REQUESTS} 7" in page
        assert "tetrapod_workers 1" in page

    asyncio.run(run())


def test_file_of_a_worker_is_complete_after_simultaneous_scrapes(tmp_path: Path) -> None:
    async def run() -> None:
        worker = WorkerMetrics(tmp_path, 0, 1)
        for _ in range(5):
            await asyncio.gather(*(worker.page(PAGE, native_histograms=bool(number % 2)) for number in range(8)))
            assert decode((tmp_path / f"0.{PAGE}").read_bytes())

    asyncio.run(run())
    assert [path.name for path in tmp_path.iterdir()] == [f"0.{PAGE}"]
