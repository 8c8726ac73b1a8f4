"""Compare two running servers: each is loaded for a second in turn, and each pair of seconds gives a ratio.

A machine whose speed changes every minute changes it for both servers. This method therefore shows differences of a few
per cent, which two separate runs cannot. Nothing else may run on the machine.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from bench.asgi import Asgi
from bench.measuring import Measuring, Plan, Rate, Share
from bench.targets import Target
from bench.works import WORKS


def measure(
    ours: Target, theirs: Target, plan: Plan, servers: tuple[Asgi, Asgi], ca: Path, directory: Path
) -> dict[str, Share]:
    """Return the ratios by work: `plan.pairs` pairs of each work that the plan selects."""
    both = [Measuring(target, plan, servers, ca, directory) for target in (ours, theirs)]
    shares: dict[str, Share] = {}
    try:
        for measuring in both:
            measuring.begin()
        for work in WORKS:
            if not plan.wants(work.key):
                continue
            ours_once, theirs_once = (measuring.ready_for(work) for measuring in both)
            share = shares[work.key] = _share(ours_once, theirs_once, plan.pairs)
            _say(
                f"  {work.key}: {share.median:.2f} of it ({share.low:.2f} to {share.high:.2f}), "
                f"{share.ours * 1e6:,.1f} beside {share.theirs * 1e6:,.1f} µs"
            )
    finally:
        ours.close()
        theirs.close()
    return shares


def _share(one: Callable[[], Rate], other: Callable[[], Rate], pairs: int) -> Share:
    taken = []
    for number in range(pairs):
        if number % 2:  # alternate which server is first
            theirs = other().cpu
            taken.append((one().cpu, theirs))
        else:
            ours = one().cpu
            taken.append((ours, other().cpu))
    low, median, high = statistics.quantiles((ours / theirs for ours, theirs in taken), n=4)
    return Share(median, low, high, *(statistics.median(side) for side in zip(*taken, strict=True)))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
