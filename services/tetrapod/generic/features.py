"""Feature gates as they are by default in the release that is followed, which is how this server behaves; shown as a metric.

`features.txt` has what a kube-apiserver of that release shows, gates of other components among them: name, stage, whether it is on.
Upstream: component-base/metrics/prometheus/feature.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def defaults() -> tuple[tuple[str, str, bool], ...]:
    """Name, stage and whether it is on; read when it is asked for first."""
    lines = files(__package__).joinpath("features.txt").read_text().splitlines()
    return tuple((name, stage, enabled == "1") for name, stage, enabled in map(str.split, lines))
