"""The conversion of prometheus-client's collectors (of the process and of Python) to our metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tetrapod.generic.metrics.collectors import CounterFunction, GaugeFunction, Metric


def all_families(metrics: Sequence[Metric], collectors: Sequence[Any]) -> list[Metric]:
    """Return the metrics and those of the collectors, sorted by name; of duplicate names ours is kept."""
    by_name = {metric.name: metric for metric in metrics}
    for collector in collectors:
        for family in collector.collect():
            metric = _convert(family)
            by_name.setdefault(metric.name, metric)
    return [by_name[name] for name in sorted(by_name)]


def _convert(family: Any) -> Metric:
    counter = family.type == "counter"
    labels = tuple(family.samples[0].labels) if family.samples else ()
    rows = [(tuple(sample.labels.values()), float(sample.value)) for sample in family.samples]
    make = CounterFunction if counter else GaugeFunction
    return make(f"{family.name}_total" if counter else family.name, family.documentation, labels, lambda: rows, [])
