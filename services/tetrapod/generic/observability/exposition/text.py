"""Metrics as Prometheus' text, version 0.0.4.

Upstream: prometheus/common/expfmt/text_create.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tetrapod.generic.metrics.collectors import Metric, shown_help
from tetrapod.generic.observability.exposition.prometheus_client import all_families
from tetrapod.machinery.golang.floats import go_float

_IN_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_VALUE: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def render(metrics: Sequence[Metric], collectors: Sequence[Any] = ()) -> bytes:
    """Return the metrics and those of prometheus-client's `collectors` as text.

    With many series it is slow: call it in a thread.

    Families without a series have their HELP and TYPE lines; upstream omits them until something is counted.
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
    """Format a number as Go's strconv with 'g'. Most values are small integers, which take a short cut."""
    whole = int(value) if -1e6 < value < 1e6 else None
    return str(whole) if whole == value else go_float(value)
