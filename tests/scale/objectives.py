"""The objectives that a run is judged by, as in docs/SLOS.md.

Upstream: sig-scalability/slos/api_call_latency.md in kubernetes/community.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from scale.results import Latency, Run

MUTATING: Final = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
LEAST: Final = 100
"""Calls with fewer requests than this have no 99th percentile, and are judged by none."""


@dataclass(frozen=True)
class Objective:
    """A limit for the 99th percentile of each call of a class.

    Attributes:
        official: the limit that Kubernetes promises, in milliseconds.
        goal: Tetrapod's own limit at 500 nodes; None for none.
    """

    key: str
    title: str
    official: float
    goal: float | None = None


MUTATIONS: Final = Objective("mutating", "writes of one object", 1000, 100)
READS: Final = Objective("read", "reads of one object", 1000, 50)
LISTS: Final = Objective("list", "lists", 30_000)
DELIVERY: Final = Objective("watch", "delivery of watch events", 1000, 200)
CALLS: Final = (MUTATIONS, READS, LISTS)


def objective_of(call: Latency) -> Objective:
    """Return the objective that a call falls under."""
    if call.scope != "resource":
        return LISTS
    return MUTATIONS if call.verb in MUTATING else READS


def worst(calls: Iterable[Latency], objective: Objective) -> Latency | None:
    """Return the call of a class with the highest 99th percentile; None if none had enough requests."""
    judged = [call for call in calls if objective_of(call) is objective and call.count >= LEAST]
    if objective is LISTS and not judged:  # lists of everything are rare, and each is judged
        judged = [call for call in calls if objective_of(call) is objective]
    return max(judged, key=lambda call: call.p99_ms, default=None)


def broken(run: Run) -> list[str]:
    """Return what a run broke, in words; empty if the server held all objectives, as its clients saw them."""
    found = []
    for objective in CALLS:
        call = worst(run.client, objective)
        if call is not None and call.p99_ms > objective.official:
            found.append(f"{call.name}: {call.p99_ms:,.0f} ms")
    if run.delivery is not None and run.delivery.p99_ms > DELIVERY.official:
        found.append(f"watch events: {run.delivery.p99_ms:,.0f} ms")
    failed = sum(call.failed for call in run.client)
    if failed > 0.001 * sum(call.count for call in run.client):
        found.append(f"{failed:,} requests failed")
    if run.skipped > 0.001 * run.rate * run.seconds:
        found.append(f"{run.skipped:,} requests were not sent, because the server did not keep up")
    if run.undelivered:
        found.append(f"{run.undelivered:,} events never came")
    return found
