"""Gauges of queued and executing requests by level and schema, computed when they are scraped.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/metrics/metrics.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from operator import attrgetter
from weakref import WeakMethod

from tetrapod.generic.flowcontrol import utilization
from tetrapod.generic.flowcontrol.queue import Ticket
from tetrapod.generic.flowcontrol.queueset import QueueSet
from tetrapod.generic.metrics.counters import CounterFunction, GaugeFunction

_PREFIX = "apiserver_flowcontrol_"
_LEVEL = ("priority_level",)
_LABELS = ("priority_level", "flow_schema")
_OF = "API Priority and Fairness subsystem"
_STAGES = "in initial (for a WATCH) or any (for a non-WATCH) execution stage"
_Rows = Sequence[tuple[tuple[str, ...], float]]

_published: WeakMethod[Callable[[], Iterable[QueueSet]]] | None = None


def publish(queue_sets: Callable[[], Iterable[QueueSet]]) -> None:
    """Show the queue sets that `queue_sets`, a bound method, returns at each scrape in the gauges of this module.

    A process has one set of these gauges. If several servers run in it, as in tests, they show the server that called
    this last, until that server is freed.
    """
    global _published
    _published = WeakMethod(queue_sets)
    _register()


def _queue_sets() -> Iterable[QueueSet]:
    queue_sets = None if _published is None else _published()
    return () if queue_sets is None else queue_sets()


@cache
def _register() -> None:
    """Register the metrics of the published queue sets. Only the first call in a process does so."""
    utilization.register(lambda: [(queues.name, queues.utilization.rows(queues.limits)) for queues in _queue_sets()])
    _register_virtual_times()
    CounterFunction(
        f"{_PREFIX}dispatched_requests_total",
        f"Number of requests executed by {_OF}",
        _LABELS,
        lambda: [row for queues in _queue_sets() for row in queues.dispatched.items()],
    )
    for name, text, value in (
        ("inqueue_requests", f"requests currently pending in queues of the {_OF}", lambda ticket: ticket.waits),
        (
            "inqueue_seats",
            f"seats currently pending in queues of the {_OF}",
            lambda ticket: ticket.seats if ticket.waits else 0,
        ),
        ("executing_requests", f"requests {_STAGES} in the {_OF}", lambda ticket: not ticket.waits),
    ):
        GaugeFunction(f"{_PREFIX}current_{name}", f"Number of {text}", _LABELS, partial(_of_tickets, value))
    GaugeFunction(
        f"{_PREFIX}current_executing_seats",
        "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage "
        f"otherwise) requests in the {_OF}",
        _LABELS,
        _executing_seats,
    )


def _register_virtual_times() -> None:
    """Register the metrics of fair queuing: R, the progress of a level, and S, the start of a request on that scale."""
    GaugeFunction(
        f"{_PREFIX}current_r",
        "R(time of last change)",
        _LEVEL,
        lambda: [((queues.name,), queues.r) for queues in _queue_sets()],
    )
    for name, text, value in (
        ("dispatch_r", "R(time of last dispatch)", attrgetter("dispatch_r")),
        ("latest_s", "S(most recently dispatched request)", attrgetter("latest_s")),
    ):
        GaugeFunction(_PREFIX + name, text, _LEVEL, partial(_of_queues, value))
    oldest = "min and max, over queues, of S(oldest waiting request in queue)"
    discounted = f"{oldest} - estimated work in progress"
    for which, (name, text) in enumerate((("next_s_bounds", oldest), ("next_discounted_s_bounds", discounted))):
        GaugeFunction(_PREFIX + name, text, (*_LEVEL, "bound"), partial(_bounds, which))


def _of_tickets(value: Callable[[Ticket], int]) -> _Rows:
    """Return the sums of `value` over the requests of each level and schema; 0 for those that have had requests."""
    counts: Counter[tuple[str, ...]] = Counter()
    for queues in _queue_sets():
        counts.update(dict.fromkeys(queues.dispatched, 0))
        for ticket in queues.tickets():
            counts[ticket.labels] += value(ticket)
    return list(counts.items())


def _executing_seats() -> _Rows:
    counts = Counter(dict(_of_tickets(lambda ticket: 0 if ticket.waits else ticket.seats)))
    for queues in _queue_sets():
        counts.update(queues.lingering)
    return list(counts.items())


def _of_queues(value: Callable[[QueueSet], float]) -> _Rows:
    """Return `value` of each priority level that has queues."""
    return [((queues.name,), value(queues)) for queues in _queue_sets() if queues.queuing.queues > 0]


def _bounds(which: int) -> _Rows:
    """Return the highest and the lowest S of the oldest waiting requests of each level that has queues.

    Args:
        which: the index in the result of `QueueSet.next_s`.
    """
    rows: list[tuple[tuple[str, ...], float]] = []
    for queues in _queue_sets():
        if queues.queuing.queues > 0:
            of_each = queues.next_s()[which] or [queues.latest_s]
            rows += [((queues.name, "max"), max(of_each)), ((queues.name, "min"), min(of_each))]
    return rows
