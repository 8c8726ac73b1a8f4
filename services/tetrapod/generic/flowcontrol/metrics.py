"""The metrics of flow control, with upstream's names. Gauges of the present state are in `state_metrics.py`.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/metrics/metrics.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.metrics.histograms import Histogram

_P: Final = "apiserver_flowcontrol_"
_BOTH: Final = ("priority_level", "flow_schema")
_LEVEL: Final = ("priority_level",)
_SECONDS: Final = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)

REJECTED: Final = Counter(
    _P + "rejected_requests_total",
    "Number of requests rejected by API Priority and Fairness subsystem",
    (*_BOTH, "reason"),
)
QUEUE_LENGTH: Final = Histogram(
    _P + "request_queue_length_after_enqueue",
    "Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued",
    _BOTH,
    (0, 10, 25, 50, 100, 250, 500, 1000),
)
WAIT: Final = Histogram(
    _P + "request_wait_duration_seconds",
    "Length of time a request spent waiting in its queue",
    (*_BOTH, "execute"),
    _SECONDS,
)
EXECUTION: Final = Histogram(
    _P + "request_execution_seconds",
    "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution "
    "in the API Priority and Fairness subsystem",
    (*_BOTH, "type"),
    _SECONDS,
)
SEATS: Final = Histogram(
    _P + "work_estimated_seats",
    "Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and "
    "Fairness",
    _BOTH,
    (1, 2, 4, 8, 16, 32, 64, 100),
)
WATCHERS: Final = Histogram(
    _P + "watch_count_samples",
    "count of watchers for mutating requests in API Priority and Fairness",
    _BOTH,
    (0, 1, 10, 100, 1000, 10000),
)
NO_ACCOMMODATION: Final = Counter(
    _P + "request_dispatch_no_accommodation_total",
    "Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats",
    _BOTH,
)
NOMINAL: Final = Gauge(
    _P + "nominal_limit_seats", "Nominal number of execution seats configured for each priority level", _LEVEL
)
LOWER: Final = Gauge(
    _P + "lower_limit_seats",
    "Configured lower bound on number of execution seats available to each priority level",
    _LEVEL,
)
UPPER: Final = Gauge(
    _P + "upper_limit_seats",
    "Configured upper bound on number of execution seats available to each priority level",
    _LEVEL,
)
CURRENT: Final = Gauge(
    _P + "current_limit_seats", "current derived number of execution seats available to each priority level", _LEVEL
)
HIGHEST_DEMAND: Final = Gauge(
    _P + "demand_seats_high_watermark", "High watermark, over last adjustment period, of demand_seats", _LEVEL
)
AVERAGE_DEMAND: Final = Gauge(
    _P + "demand_seats_average", "Time-weighted average, over last adjustment period, of demand_seats", _LEVEL
)
DEVIATION: Final = Gauge(
    _P + "demand_seats_stdev", "Time-weighted standard deviation, over last adjustment period, of demand_seats", _LEVEL
)
SMOOTHED: Final = Gauge(_P + "demand_seats_smoothed", "Smoothed seat demands", _LEVEL)
TARGET: Final = Gauge(_P + "target_seats", "Seat allocation targets", _LEVEL)
FAIR_FRACTION: Final = Gauge(
    _P + "seat_fair_frac", "Fair fraction of server's concurrency to allocate to each priority level that can use it"
)
