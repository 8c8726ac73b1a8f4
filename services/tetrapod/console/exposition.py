"""The series of a metrics page that the console shows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

Labels = tuple[str, ...]
"""The values of the labels that a family is read by."""
Series = dict[Labels, float]

_FLOW: Final = ("priority_level", "flow_schema")
FAMILIES: Final[Mapping[str, Labels]] = {
    "apiserver_flowcontrol_dispatched_requests_total": _FLOW,
    "apiserver_flowcontrol_rejected_requests_total": _FLOW,
    "apiserver_flowcontrol_current_inqueue_requests": _FLOW,
    "apiserver_flowcontrol_current_executing_seats": ("priority_level",),
    "apiserver_flowcontrol_current_limit_seats": ("priority_level",),
    "apiserver_flowcontrol_nominal_limit_seats": ("priority_level",),
    "apiserver_flowcontrol_request_execution_seconds_bucket": (*_FLOW, "le"),
    "apiserver_flowcontrol_request_execution_seconds_sum": _FLOW,
    "apiserver_flowcontrol_request_execution_seconds_count": _FLOW,
    "apiserver_flowcontrol_request_wait_duration_seconds_sum": _FLOW,
    "apiserver_flowcontrol_request_wait_duration_seconds_count": _FLOW,
    "apiserver_request_total": ("verb", "code"),
    "apiserver_request_duration_seconds_bucket": ("verb", "le"),
    "apiserver_request_duration_seconds_sum": ("verb",),
    "apiserver_request_duration_seconds_count": ("verb",),
    "apiserver_longrunning_requests": ("verb", "group", "resource"),
    "apiserver_resource_objects": ("group", "resource"),
    "apiserver_watch_cache_resource_version": ("group", "resource"),
    "apiserver_watch_cache_events_received_total": ("group", "resource"),
    "watch_cache_capacity": ("group", "resource"),
    "process_cpu_seconds_total": (),
    "process_resident_memory_bytes": (),
}
"""The series that are read, and the labels by which each is merged."""
_SAME_IN_REPLICAS: Final = frozenset(
    {"apiserver_resource_objects", "apiserver_watch_cache_resource_version", "watch_cache_capacity"}
)
"""Gauges of which all replicas show about the same value: the largest is taken instead of the sum."""

_LINES: Final = re.compile(rf"^(?:{'|'.join(FAMILIES)})(?=[{{ ]).*\n", re.MULTILINE)


def read(text: str) -> dict[str, Series]:
    """Return the series of a metrics page, merged by the labels of FAMILIES. Families that are absent are empty.

    Raises:
        ValueError: a line is malformed.
    """
    families: dict[str, Series] = {name: defaultdict(float) for name in FAMILIES}
    lines = "".join(_LINES.findall(text if text.endswith("\n") else f"{text}\n"))
    for family in text_string_to_metric_families(lines):
        for sample in family.samples:
            labels = tuple(sample.labels.get(label, "") for label in FAMILIES[sample.name])
            _merge(sample.name, families[sample.name], labels, sample.value)
    return families


def total(pages: Iterable[Mapping[str, Series]]) -> dict[str, Series]:
    """Return the merged series of several pages."""
    merged: dict[str, Series] = {name: defaultdict(float) for name in FAMILIES}
    for page in pages:
        for name, series in page.items():
            for labels, value in series.items():
                _merge(name, merged[name], labels, value)
    return merged


def _merge(name: str, series: Series, labels: Labels, value: float) -> None:
    series[labels] = max(series[labels], value) if name in _SAME_IN_REPLICAS else series[labels] + value
