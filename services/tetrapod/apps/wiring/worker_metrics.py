"""The metrics of several workers, as the flags configure them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tetrapod.apps.options.options import Options

if TYPE_CHECKING:
    from tetrapod.generic.observability.worker_metrics.exchange import WorkerMetrics


def build_worker_metrics(options: Options) -> WorkerMetrics | None:
    """Return the metrics of the workers of this server, or None if it has only one process."""
    worker = options.worker
    if worker is None:
        return None
    from tetrapod.generic.observability.worker_metrics.exchange import WorkerMetrics

    return WorkerMetrics(worker.directory, worker.index, worker.count)
