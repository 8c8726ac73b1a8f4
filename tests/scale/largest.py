"""A run: find by bisection the largest cluster at which a server holds all objectives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from bench.targets import Target
from scale import cluster
from scale.objectives import MUTATIONS, READS, broken, worst
from scale.results import Figures, Run, figures

FIRST: Final = 50
"""The size of the first run in nodes. Later ones are twice as large until one does not hold the objectives."""
EXACT: Final = 0.1
"""The search ends when the largest size that holds and the smallest that does not differ by this share."""


def run(key: str, target: Target, seconds: int, directory: Path) -> Figures:
    """Load the server with clusters of several sizes, each for so many seconds, and return the largest that it holds.

    Raises:
        LoadFailed: the load generator gave up.
        NotStarted: the server did not start.
    """
    best: Run | None = None
    below, above, nodes = 0, 0, FIRST
    while not above or above - below > max(1, EXACT * above):
        result = cluster.run(key, target, cluster.in_proportion(nodes, seconds), directory, [])
        target.stop()
        missed = broken(result)
        print(f"  {nodes} nodes: {'; '.join(missed) or 'all objectives held'}", file=sys.stderr, flush=True)
        if missed:
            above = nodes
        else:
            below, best = nodes, result
        nodes = (below + above) // 2 if above else 2 * nodes
    return figures("largest", seconds, key, above=above, **_values(best))


def _values(best: Run | None) -> dict[str, float]:
    if best is None:
        return dict.fromkeys(("nodes", "pods", "rate", "writes", "reads", "delivery", "cpu", "memory"), 0.0)
    writes, reads = (worst(best.client, objective) for objective in (MUTATIONS, READS))
    return {
        "nodes": best.nodes,
        "pods": best.pods,
        "rate": best.rate,
        "writes": 0.0 if writes is None else writes.p99_ms,
        "reads": 0.0 if reads is None else reads.p99_ms,
        "delivery": 0.0 if best.delivery is None else best.delivery.p99_ms,
        "cpu": best.use.cpu,
        "memory": best.use.memory,
    }
