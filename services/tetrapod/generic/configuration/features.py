"""The feature gates with the defaults of the upstream release, which this server behaves like; shown as a metric.

`features.txt` lists the gates that a kube-apiserver of that release shows, including those of other components: name,
stage, enabled.
Upstream: component-base/metrics/prometheus/feature.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def defaults() -> tuple[tuple[str, str, bool], ...]:
    """Return the name, stage (such as ALPHA) and default of each feature gate."""
    lines = files(__package__).joinpath("features.txt").read_text().splitlines()
    return tuple((name, stage, enabled == "1") for name, stage, enabled in map(str.split, lines))
