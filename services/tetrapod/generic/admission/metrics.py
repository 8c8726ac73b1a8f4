"""Metrics of admission latency by plugin and by phase.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/metrics/metrics.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.summaries import Summary

_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
_REJECTED: Final = {True: "true", False: "false"}
_PLUGIN: Final = Histogram(
    "apiserver_admission_controller_admission_duration_seconds",
    "Admission controller latency histogram in seconds, identified by name and broken out for each operation and API "
    "resource and type (validate or admit).",
    ("name", "type", "operation", "rejected"),
    _BUCKETS,
)
_STEP: Final = Histogram(
    "apiserver_admission_step_admission_duration_seconds",
    "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type "
    "(validate or admit).",
    ("type", "operation", "rejected"),
    _BUCKETS,
)
_STEP_SUMMARY: Final = Summary(
    "apiserver_admission_step_admission_duration_seconds_summary",
    "Admission sub-step latency summary in seconds, broken out for each operation and API resource and step type "
    "(validate or admit).",
    ("type", "operation", "rejected"),
)


def plugin(name: str, phase: str, operation: str, seconds: float, rejected: bool) -> None:
    """Record the duration of a plugin call in seconds.

    Args:
        name: the name of the plugin.
        phase: "admit" or "validate".
        operation: the operation of the request, such as "CREATE".
        seconds: the duration.
        rejected: whether the plugin rejected the request.
    """
    _PLUGIN.observe((name, phase, operation, _REJECTED[rejected]), seconds)


def step(phase: str, operation: str, seconds: float, rejected: bool) -> None:
    """Record the duration of one phase of admission, with all its plugins.

    Args:
        phase: "admit" or "validate".
        operation: the operation of the request, such as "CREATE".
        seconds: the duration.
        rejected: whether a plugin rejected the request.
    """
    labels = (phase, operation, _REJECTED[rejected])
    _STEP.observe(labels, seconds)
    _STEP_SUMMARY.observe(labels, seconds)
