"""The allowed values of labels (--allow-metric-labels): other values are counted as "unexpected".

Upstream: staging/src/k8s.io/component-base/metrics/options.go, SetLabelAllowList
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tetrapod.generic.metrics.series import UNEXPECTED

_allowed: Final[dict[str, dict[str, frozenset[str]]]] = {}
"""The allowed values by the name of the metric and that of the label."""


def allow_labels(values: Mapping[tuple[str, str], Sequence[str]]) -> None:
    """Set the allowed values by (metric, label). Those of an earlier call are forgotten."""
    _allowed.clear()
    for (metric, label), allowed in values.items():
        _allowed.setdefault(metric, {})[label] = frozenset(allowed)


def is_constrained(metric: str) -> bool:
    """Return whether values of a label of the metric are restricted."""
    return metric in _allowed


def constrained(metric: str, names: Sequence[str], values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the label values under which a metric counts: "unexpected" in place of values that are not allowed.

    Args:
        metric: the name of the metric.
        names: the names of its labels.
        values: their values, in the same order.
    """
    allowed = _allowed.get(metric)
    if allowed is None:
        return values
    return tuple(
        value if name not in allowed or value in allowed[name] else UNEXPECTED
        for name, value in zip(names, values, strict=True)
    )
