"""The exchange of metrics between the workers of a server, over Unix sockets in their private directory.

A worker that is asked for its metrics also keeps them in a file. The file stands in for a worker that does not answer
in time. The process that replaces a worker begins with the counters in the file, so that sums never decrease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.http.unix_sockets import is_same_user
from tetrapod.generic.metrics import metric, registry
from tetrapod.generic.metrics.metric import Metric
from tetrapod.generic.observability import process_metrics
from tetrapod.generic.observability.exposition import native
from tetrapod.generic.observability.worker_metrics import families
from tetrapod.generic.observability.worker_metrics.families import Family

log = logging.getLogger(__name__)

_DEADLINE_SECONDS: Final = 2.0
"""Seconds that a scrape waits for the other workers. Prometheus gives up after 10 by default."""
_LONGEST_PAGE: Final = 64 * 1024 * 1024
"""The maximum size in bytes of the metrics that one worker sends."""
_REQUEST_SIZE: Final = 64
PAGE: Final = "metrics"
SLIS: Final = "slis"
RESET: Final = "reset"
_NATIVE: Final = "native"


class WorkerMetrics:
    """The metrics of all workers of one server, which each worker can show.

    A worker requests the metrics of the others at each scrape, and adds them up.

    Args:
        directory: the private directory of the workers.
        index: the number of this worker.
        count: the number of workers.
    """

    def __init__(self, directory: Path, index: int, count: int) -> None:
        self._directory, self._index, self._count = directory, index, count
        self._server: asyncio.Server | None = None
        self._inherited: dict[str, list[Family]] = {}
        self._writing = threading.Lock()  # of the files: simultaneous scrapes write in several threads

    async def start(self) -> None:
        """Load the counters of the previous process with this worker's number, and listen for other workers' requests.

        The new process continues these counters, so that no counter decreases.

        Raises:
            OSError: the directory cannot be used.
        """
        for page in (PAGE, SLIS):
            self._inherited[page] = families.counted(self._kept(page))
        path = self._socket(self._index)
        path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._answer, path)

    async def stop(self) -> None:
        """Stop listening for requests of other workers."""
        if self._server is not None:
            self._server.close()

    async def page(self, page: str, *, native_histograms: bool) -> list[Metric]:
        """Return the metrics of all workers, added up or otherwise combined to those of one server.

        A worker that does not answer in time contributes the counters that it saved at its last scrape.

        Args:
            page: `metrics` (the page /metrics) or `slis` (/metrics/slis).
            native_histograms: whether the page contains native histograms.
        """
        others = [index for index in range(self._count) if index != self._index]
        request = f"{page} {_NATIVE}" if native_histograms else page
        own, *pages = await asyncio.gather(
            self._own(page, native_histograms=native_histograms), *(self._ask(index, request) for index in others)
        )
        return await asyncio.to_thread(self._combine, page, own, dict(zip(others, pages, strict=True)))

    async def reset(self, page: str) -> None:
        """Reset the counters of this worker and of all others that can be reached.

        Args:
            page: `metrics` (the page /metrics) or `slis` (/metrics/slis).
        """
        self._reset(page)
        await asyncio.gather(
            *(self._ask(index, f"{RESET} {page}") for index in range(self._count) if index != self._index)
        )

    def _combine(self, page: str, own: bytes, pages: dict[int, bytes]) -> list[Metric]:
        workers = [families.decode(own)]
        answered = float(self._count)
        for index, answer in pages.items():
            try:
                workers.append(families.decode(answer))
            except ValueError:  # no answer, or a part of one
                workers.append(families.counted(self._kept(page, index)))
                answered -= 1
        combined = families.combine(workers)
        if page == PAGE:
            combined.append(families.gauge("tetrapod_workers", "Workers whose metrics are on this page.", answered))
        return families.as_metrics(combined)

    # --- this worker

    async def _own(self, page: str, *, native_histograms: bool) -> bytes:
        """Return the encoded metrics of this worker, including the counters of its previous process.

        They are also saved in the worker's file, which the other workers read if it ends or does not respond.

        Args:
            page: `metrics` (the page /metrics) or `slis` (/metrics/slis).
            native_histograms: whether to start counting native histograms, and to include them.
        """
        metrics, others = await _present(page, native_histograms=native_histograms)
        inherited = families.encode(families.counted(self._inherited.get(page, ())))
        return await asyncio.to_thread(self._write, page, metrics, others, inherited)

    def _write(self, page: str, metrics: Sequence[Metric], others: Sequence[Any], inherited: bytes) -> bytes:
        path = self._file(page, self._index)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        with self._writing:
            present = families.read_families(metrics, others)
            data = families.encode(families.combine((present, families.decode(inherited))))
            with contextlib.suppress(OSError):
                temporary.write_bytes(data)
                temporary.replace(path)
        return data

    def _reset(self, page: str) -> None:
        self._inherited.pop(page, None)
        if page == SLIS:
            registry.reset_slis()
        else:
            registry.reset()
        self._file(page, self._index).unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request from the socket of another worker, and send it the metrics of this one, or reset them.

        Connections of processes of other users are closed.
        """
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                if not is_same_user(writer.get_extra_info("socket")):
                    return
                words = (await reader.read(_REQUEST_SIZE)).decode("ascii", "replace").split()
                if words in ([RESET, PAGE], [RESET, SLIS]):
                    self._reset(words[-1])
                elif words and words[0] in (PAGE, SLIS):
                    writer.write(await self._own(words[0], native_histograms=_NATIVE in words))
                    await writer.drain()
        except (OSError, TimeoutError) as error:
            log.debug("metrics not sent to another worker: %s", error)
        finally:
            writer.close()

    # --- other workers

    async def _ask(self, index: int, request: str) -> bytes:
        """Return the answer of another worker, or b"" if it fails. A failure is logged.

        It fails if the worker cannot be reached, does not answer within two seconds, or answers with more than 64 MiB.

        Args:
            index: the number of the worker.
            request: a page, such as `metrics`, perhaps followed by a space and `_NATIVE`; or `RESET`, a space and a
                page, to which the answer is empty.
        """
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._socket(index))
                writer.write(request.encode())
                answer = bytearray()
                while part := await reader.read(1 << 20):
                    answer += part
                    if len(answer) > _LONGEST_PAGE:
                        raise OSError("too many metrics")
                return bytes(answer)
        except (OSError, TimeoutError) as error:
            log.warning("worker %d does not send its metrics: %s", index, str(error) or type(error).__name__)
            return b""
        finally:
            if writer is not None:
                writer.close()

    def _kept(self, page: str, index: int | None = None) -> list[Family]:
        """Return the metrics that a worker saved at its last scrape.

        Return [] if it has not been scraped yet, or its file cannot be read or decoded.

        Args:
            page: `metrics` (the page /metrics) or `slis` (/metrics/slis).
            index: the number of the worker; None for this one.
        """
        path = self._file(page, self._index if index is None else index)
        try:
            return families.decode(path.read_bytes())
        except (OSError, ValueError):
            return []

    def _socket(self, index: int) -> Path:
        return self._directory / f"{index}.sock"

    def _file(self, page: str, index: int) -> Path:
        return self._directory / f"{index}.{page}"


async def _present(page: str, *, native_histograms: bool) -> tuple[list[Metric], list[Any]]:
    """Return the metrics of a page in this process, and the collectors of prometheus-client to show with them.

    Args:
        page: `metrics` (the page /metrics) or `slis` (/metrics/slis).
        native_histograms: whether to start counting native histograms.
    """
    metrics: list[Metric]
    others: list[Any]
    if page == SLIS:
        metrics, others = list(metric.SLIS), []
    else:
        metrics, others = await process_metrics.scraped()
    if native_histograms:
        native.begin(metrics)
    return metrics, others
