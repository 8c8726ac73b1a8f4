"""Gauges of queued and executing requests by level and schema, computed when they are scraped.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/metrics/metrics.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from weakref import WeakMethod

from tetrapod.generic.flowcontrol import utilization
from tetrapod.generic.flowcontrol.queueset import QueueSet, Ticket
from tetrapod.generic.metrics.collectors import CounterFunction, GaugeFunction

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
    queue_sets = _queue_sets

    def tickets(value: Callable[[Ticket], int]) -> Callable[[], _Rows]:
        def read() -> _Rows:
            counts: Counter[tuple[str, ...]] = Counter()
            for queues in queue_sets():
                counts.update(dict.fromkeys(queues.dispatched, 0))
                for ticket in queues.tickets():
                    counts[ticket.labels] += value(ticket)
            return list(counts.items())

        return read

    def executing_seats() -> _Rows:
        counts = Counter(dict(tickets(lambda t: 0 if t.waits else t.seats)()))
        for queues in queue_sets():
            counts.update(queues.lingering)
        return list(counts.items())

    def dispatched() -> _Rows:
        return [row for queues in queue_sets() for row in queues.dispatched.items()]

    def bounds(which: int) -> Callable[[], _Rows]:
        def read() -> _Rows:
            counts: list[tuple[tuple[str, ...], float]] = []
            for queues in queue_sets():
                if queues.queuing.queues > 0:
                    of_each = queues.next_s()[which] or [queues.latest_s]
                    counts += [((queues.name, "max"), max(of_each)), ((queues.name, "min"), min(of_each))]
            return counts

        return read

    utilization.register(lambda: [(queues.name, queues.utilization.rows(queues.limits)) for queues in queue_sets()])
    prefix = "apiserver_flowcontrol_"
    GaugeFunction(
        prefix + "current_r",
        "R(time of last change)",
        _LEVEL,
        lambda: [((queues.name,), queues.r) for queues in queue_sets()],
    )
    for name, text, value in (
        ("dispatch_r", "R(time of last dispatch)", lambda queues: queues.dispatch_r),
        ("latest_s", "S(most recently dispatched request)", lambda queues: queues.latest_s),
    ):
        GaugeFunction(prefix + name, text, _LEVEL, _of_queues(queue_sets, value))
    oldest = "min and max, over queues, of S(oldest waiting request in queue)"
    GaugeFunction(prefix + "next_s_bounds", oldest, (*_LEVEL, "bound"), bounds(0))
    GaugeFunction(
        prefix + "next_discounted_s_bounds", f"{oldest} - estimated work in progress", (*_LEVEL, "bound"), bounds(1)
    )
    CounterFunction(prefix + "dispatched_requests_total", f"Number of requests executed by {_OF}", _LABELS, dispatched)
    GaugeFunction(
        prefix + "current_inqueue_requests",
        f"Number of requests currently pending in queues of the {_OF}",
        _LABELS,
        tickets(lambda t: t.waits),
    )
    GaugeFunction(
        prefix + "current_inqueue_seats",
        f"Number of seats currently pending in queues of the {_OF}",
        _LABELS,
        tickets(lambda t: t.seats if t.waits else 0),
    )
    GaugeFunction(
        prefix + "current_executing_requests",
        f"Number of requests {_STAGES} in the {_OF}",
        _LABELS,
        tickets(lambda t: not t.waits),
    )
    GaugeFunction(
        prefix + "current_executing_seats",
        "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage "
        f"otherwise) requests in the {_OF}",
        _LABELS,
        executing_seats,
    )


def _of_queues(queue_sets: Callable[[], Iterable[QueueSet]], value: Callable[[QueueSet], float]) -> Callable[[], _Rows]:
    """Return a `read` function for a gauge: it returns ((name,), number) of each priority level that has queues.

    Args:
        queue_sets: returns the queue sets of all levels.
        value: returns the number for a queue set.
    """
    return lambda: [((queues.name,), value(queues)) for queues in queue_sets() if queues.queuing.queues > 0]
