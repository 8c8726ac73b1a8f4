"""`/metrics` and `/metrics/slis` of a server with several workers (--workers), the same at each of them."""

from __future__ import annotations

from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.metrics.registry import with_series
from tetrapod.generic.observability.exposition import metrics_response, negotiate
from tetrapod.generic.observability.worker_metrics.exchange import PAGE, SLIS, WorkerMetrics
from tetrapod.generic.server.routes import Routes, metrics_reset


def install_worker_metrics(routes: Routes, workers: WorkerMetrics) -> None:
    """Add routes for /metrics and /metrics/slis that show the metrics of all workers, not only of this process.

    DELETE resets the metrics in all workers.
    """
    for path, page in (("/metrics", PAGE), ("/metrics/slis", SLIS)):
        routes.add(path, _handler(workers, page), listed=False)


def _handler(workers: WorkerMetrics, page: str) -> Handler:
    async def handle(request: Request) -> Response:
        if request.method == "DELETE":
            await workers.reset(page)
            return metrics_reset()
        protobuf = bool(negotiate(request.header(b"accept")).encoding)
        metrics = await workers.page(page, native_histograms=protobuf)
        return await metrics_response(request, with_series(metrics) if page == SLIS else metrics)

    return handle
