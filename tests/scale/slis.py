"""The official service level indicators of the API, from `apiserver_request_sli_duration_seconds` of a server.

Upstream: "API call latency SLIs/SLOs details" in kubernetes/community, sig-scalability/slos/api_call_latency.md.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from tetrapod.console.traffic import quantile

_BUCKET: Final = "apiserver_request_sli_duration_seconds_bucket"
_LINES: Final = re.compile(rf"^{_BUCKET}\{{.*\n", re.MULTILINE)
_LONG_RUNNING: Final = frozenset({"WATCH", "CONNECT"})


@dataclass(frozen=True, order=True)
class Call:
    """The labels of a series of latencies."""

    group: str
    resource: str
    subresource: str
    verb: str
    scope: str

    @property
    def name(self) -> str:
        """The name for readers, such as `pods/status PATCH resource`."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{resource}{'/' if self.subresource else ''}{self.subresource} {self.verb} {self.scope}"


Buckets = dict[float, float]
"""The cumulative counts of a histogram by upper bounds in seconds."""


def read(text: str) -> dict[Call, Buckets]:
    """Return the histograms of a metrics page."""
    found: dict[Call, Buckets] = defaultdict(lambda: defaultdict(float))
    for family in text_string_to_metric_families("".join(_LINES.findall(f"{text}\n"))):
        for sample in family.samples:
            labels = sample.labels
            if labels["verb"] in _LONG_RUNNING:
                continue
            call = Call(labels["group"], labels["resource"], labels["subresource"], labels["verb"], labels["scope"])
            found[call][float(labels["le"])] += sample.value
    return found


def between(before: Mapping[Call, Buckets], after: Mapping[Call, Buckets]) -> dict[Call, Buckets]:
    """Return the histograms of the requests between two readings, without those that had none."""
    found = {}
    for call, buckets in after.items():
        earlier = before.get(call, {})
        rest = {bound: count - earlier.get(bound, 0.0) for bound, count in buckets.items()}
        if max(rest.values()) > 0:
            found[call] = rest
    return found


def percentile(buckets: Buckets, share: float) -> float:
    """Return a quantile in seconds, as Prometheus' histogram_quantile() estimates it. The histogram is not empty."""
    found = quantile(share, sorted(buckets.items()))
    assert found is not None
    return found
