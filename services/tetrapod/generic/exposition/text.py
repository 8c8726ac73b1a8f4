"""Metrics as Prometheus' text, version 0.0.4, written by prometheus-client (imported at the first scrape)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tetrapod.generic.metrics import Metric, shown_help


class _Collector:
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Any]:
        """Families by name; also those of which nothing has been counted yet, whose names upstream leaves out until then."""
        from prometheus_client.core import Metric as Family

        for metric in sorted(self._metrics, key=lambda metric: metric.name):
            name = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
            family = Family(name, shown_help(metric), metric.kind)
            for sample, labels, value in metric.samples():
                family.add_sample(sample, labels, value)
            yield family


def render(metrics: Sequence[Metric], collectors: Sequence[Any] = ()) -> bytes:
    """`collectors` are prometheus-client's own. Takes a while with many series: call it in a thread."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(metrics))
    for collector in collectors:
        registry.register(collector)
    text = generate_latest(registry)
    for metric in metrics:
        if metric.kind == "counter" and not metric.name.endswith("_total"):  # a name from before the convention
            for line in (b"# HELP ", b"# TYPE "):
                text = text.replace(b"%b%b_total " % (line, metric.name.encode()), b"%b%b " % (line, metric.name.encode()))
    return text
