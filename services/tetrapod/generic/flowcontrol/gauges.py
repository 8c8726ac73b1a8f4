"""What waits and what executes, by level and schema, counted when it is scraped (upstream: flowcontrol/metrics/metrics.go)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tetrapod.generic.flowcontrol import utilization
from tetrapod.generic.flowcontrol.queueset import QueueSet, Ticket
from tetrapod.generic.metrics import CounterFunction, GaugeFunction

_LEVEL = ("priority_level",)
_LABELS = ("priority_level", "flow_schema")
_OF = "API Priority and Fairness subsystem"
_STAGES = "in initial (for a WATCH) or any (for a non-WATCH) execution stage"
_Rows = Sequence[tuple[tuple[str, ...], float]]


def register(queue_sets: Callable[[], Iterable[QueueSet]]) -> None:
    """Show these queues at /metrics."""

    def tickets(value: Callable[[Ticket], int]) -> Callable[[], _Rows]:
        def read() -> _Rows:
            found: Counter[tuple[str, ...]] = Counter()
            for queues in queue_sets():
                found.update(dict.fromkeys(queues.dispatched, 0))
                for ticket in queues.tickets():
                    found[ticket.labels] += value(ticket)
            return list(found.items())

        return read

    def executing_seats() -> _Rows:
        found = Counter(dict(tickets(lambda t: 0 if t.waits else t.seats)()))
        for queues in queue_sets():
            found.update(queues.lingering)
        return list(found.items())

    def dispatched() -> _Rows:
        return [row for queues in queue_sets() for row in queues.dispatched.items()]

    def bounds(which: int) -> Callable[[], _Rows]:
        def read() -> _Rows:
            found: list[tuple[tuple[str, ...], float]] = []
            for queues in queue_sets():
                if queues.queuing.queues > 0:
                    of_each = queues.next_s()[which] or [queues.latest_s]
                    found += [((queues.name, "max"), max(of_each)), ((queues.name, "min"), min(of_each))]
            return found

        return read

    utilization.register(lambda: [(queues.name, queues.utilization.rows(queues.limits)) for queues in queue_sets()])
    p = "apiserver_flowcontrol_"
    GaugeFunction(p + "current_r", "R(time of last change)", _LEVEL, lambda: [((queues.name,), queues.r) for queues in queue_sets()])
    for name, text, value in (
        ("dispatch_r", "R(time of last dispatch)", lambda queues: queues.dispatch_r),
        ("latest_s", "S(most recently dispatched request)", lambda queues: queues.latest_s),
    ):
        GaugeFunction(p + name, text, _LEVEL, _of_queues(queue_sets, value))
    oldest = "min and max, over queues, of S(oldest waiting request in queue)"
    GaugeFunction(p + "next_s_bounds", oldest, (*_LEVEL, "bound"), bounds(0))
    GaugeFunction(p + "next_discounted_s_bounds", f"{oldest} - estimated work in progress", (*_LEVEL, "bound"), bounds(1))
    CounterFunction(p + "dispatched_requests_total", f"Number of requests executed by {_OF}", _LABELS, dispatched)
    GaugeFunction(
        p + "current_inqueue_requests", f"Number of requests currently pending in queues of the {_OF}", _LABELS, tickets(lambda t: t.waits)
    )
    GaugeFunction(
        p + "current_inqueue_seats",
        f"Number of seats currently pending in queues of the {_OF}",
        _LABELS,
        tickets(lambda t: t.seats if t.waits else 0),
    )
    GaugeFunction(p + "current_executing_requests", f"Number of requests {_STAGES} in the {_OF}", _LABELS, tickets(lambda t: not t.waits))
    GaugeFunction(
        p + "current_executing_seats",
        "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests "
        f"in the {_OF}",
        _LABELS,
        executing_seats,
    )


def _of_queues(queue_sets: Callable[[], Iterable[QueueSet]], value: Callable[[QueueSet], float]) -> Callable[[], _Rows]:
    """Of levels that have queues."""
    return lambda: [((queues.name,), value(queues)) for queues in queue_sets() if queues.queuing.queues > 0]
