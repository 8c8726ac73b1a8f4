"""Metrics as Prometheus' text, version 0.0.4, and the conversion of prometheus-client's collectors to our metrics.

Upstream: prometheus/common/expfmt/text_create.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tetrapod.generic.metrics.counters import CounterFunction, GaugeFunction
from tetrapod.generic.metrics.metric import Metric, shown_help
from tetrapod.generic.metrics.registry import DISABLED
from tetrapod.machinery.golang.floats import go_float

_IN_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_VALUE: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def render(metrics: Sequence[Metric], collectors: Sequence[Any] = ()) -> bytes:
    """Return the metrics, sorted by name, in Prometheus' text format.

    With many series it is slow: call it in a thread. Families without a series have their HELP and TYPE lines; upstream
    omits them until something is counted.

    Args:
        metrics: the metrics.
        collectors: collectors of prometheus-client, whose metrics are included.
    """
    return "".join(line for metric in all_families(metrics, collectors) for line in _lines(metric)).encode()


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {shown_help(metric).translate(_IN_HELP)}\n"
    yield f"# TYPE {metric.name} {metric.kind}\n"
    for name, labels, value in metric.samples():
        yield f"{name}{_labels(labels)} {_number(value)}\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = ",".join(f'{name}="{value.translate(_IN_VALUE)}"' for name, value in sorted(labels.items()))
    return f"{{{pairs}}}"


def _number(value: float) -> str:
    """Return a number as Go's strconv formats it with 'g'."""
    whole = int(value) if -1e6 < value < 1e6 else None
    return str(whole) if whole == value else go_float(value)


def all_families(metrics: Sequence[Metric], collectors: Sequence[Any]) -> list[Metric]:
    """Return the metrics and those of prometheus-client's collectors, sorted by name.

    Disabled metrics are left out. If both have a name, that of `metrics` is used.
    """
    by_name = {metric.name: metric for metric in metrics}
    for collector in collectors:
        for family in collector.collect():
            metric = _convert(family)
            by_name.setdefault(metric.name, metric)
    return [by_name[name] for name in sorted(by_name.keys() - DISABLED)]


def _convert(family: Any) -> Metric:
    counter = family.type == "counter"
    labels = tuple(family.samples[0].labels) if family.samples else ()
    rows = [(tuple(sample.labels.values()), float(sample.value)) for sample in family.samples]
    make = CounterFunction if counter else GaugeFunction
    return make(f"{family.name}_total" if counter else family.name, family.documentation, labels, lambda: rows, [])
