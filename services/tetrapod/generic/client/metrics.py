"""Metrics of work queues and clients (upstream: component-base/metrics/prometheus/workqueue and .../restclient)."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final, Protocol

from tetrapod.generic.metrics.counters import Counter, GaugeFunction
from tetrapod.generic.metrics.histograms import Histogram

# added up with a rounding error at each step, as upstream
_BUCKETS: Final = tuple(accumulate(range(9), lambda bucket, _: bucket * 10, initial=10e-9))
_NAME: Final = ("name",)
ADDS: Final = Counter("workqueue_adds_total", "Total number of adds handled by workqueue", _NAME)
RETRIES: Final = Counter("workqueue_retries_total", "Total number of retries handled by workqueue", _NAME)
QUEUE_SECONDS: Final = Histogram(
    "workqueue_queue_duration_seconds",
    "How long in seconds an item stays in workqueue before being requested.",
    _NAME,
    _BUCKETS,
)
WORK_SECONDS: Final = Histogram(
    "workqueue_work_duration_seconds", "How long in seconds processing an item from workqueue takes.", _NAME, _BUCKETS
)


class Queue(Protocol):
    """The part of a work queue that the metrics read. Its `len` is the number of waiting keys."""

    name: str

    @property
    def in_progress(self) -> Mapping[Any, float]:
        """The keys that are being processed, with their start times (of time.monotonic())."""
        ...

    def __len__(self) -> int: ...


_queues: Final[weakref.WeakSet[Queue]] = weakref.WeakSet()


def register(queue: Queue) -> None:
    """Include a queue in the metrics, and show its counters with 0. The queue is only referenced weakly."""
    _queues.add(queue)
    name = (queue.name,)
    ADDS.add(name, 0)
    RETRIES.add(name, 0)
    QUEUE_SECONDS.row(name)
    WORK_SECONDS.row(name)


def _sums(value_of: Any) -> list[tuple[tuple[str, ...], float]]:
    """Return the values of a gauge of work queues: for each queue name, ((name,), sum over the queues with this name).

    Args:
        value_of: called with each `Queue`; returns the number to add.
    """
    values_by_name: dict[tuple[str, ...], list[float]] = {}
    for queue in list(_queues):
        values_by_name.setdefault((queue.name,), []).append(value_of(queue))
    return [(name, sum(values)) for name, values in values_by_name.items()]


def _unfinished(queue: Queue) -> float:
    now = time.monotonic()
    return sum(now - began for began in list(queue.in_progress.values()))


def _longest(queue: Queue) -> float:
    return time.monotonic() - min(queue.in_progress.values(), default=time.monotonic())


GaugeFunction("workqueue_depth", "Current depth of workqueue", _NAME, lambda: _sums(len))
GaugeFunction(
    "workqueue_unfinished_work_seconds",
    "How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values "
    "indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this "
    "increases.",
    _NAME,
    lambda: _sums(_unfinished),
)
GaugeFunction(
    "workqueue_longest_running_processor_seconds",
    "How many seconds has the longest running processor for workqueue been running.",
    _NAME,
    lambda: _sums(_longest),
)
REQUESTS: Final = Counter(
    "rest_client_requests_total",
    "Number of HTTP requests, partitioned by status code, method, and host.",
    ("code", "method", "host"),
)
REQUEST_SECONDS: Final = Histogram(
    "rest_client_request_duration_seconds",
    "Request latency in seconds. Broken down by verb, and host.",
    ("verb", "host"),
    (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0),
)


_SIZES: Final = tuple(float(size) for size in (64, 256, 512, *(1024 * 4**i for i in range(8))))
_SENT: Final = Histogram(
    "rest_client_request_size_bytes", "Request size in bytes. Broken down by verb and host.", ("verb", "host"), _SIZES
)
_RECEIVED: Final = Histogram(
    "rest_client_response_size_bytes", "Response size in bytes. Broken down by verb and host.", ("verb", "host"), _SIZES
)


def count_request(host: str, method: str, code: str, began: float, sent: int, received: int) -> None:
    """Count a request of a client that has just ended.

    Args:
        host: the host and port of the server.
        method: the HTTP method.
        code: the status code, or "<error>", as upstream, if the server did not respond.
        began: when the request was sent (of time.monotonic()).
        sent: bytes of the request body.
        received: bytes of the response body.
    """
    REQUESTS.add((code, method, host))
    request_labels = (method, host)
    REQUEST_SECONDS.observe(request_labels, time.monotonic() - began)
    _SENT.observe(request_labels, sent)
    if received:
        _RECEIVED.observe(request_labels, received)
