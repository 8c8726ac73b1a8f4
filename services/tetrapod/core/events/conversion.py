"""Conversion of events between core/v1 (stored) and events.k8s.io/v1, one kind with two sets of field names.

Fields that events.k8s.io/v1 does not have keep a deprecated name there. Upstream: pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object

_TO_EVENTS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_TO_CORE: Final = {new: old for old, new in _TO_EVENTS.items()}
_CORE_FIELDS: Final = (
    ("involvedObject", dict),
    ("source", dict),
    ("reportingComponent", str),
    ("reportingInstance", str),
)


def convert_event(obj: Object, version: str) -> Object:
    """Return a copy of a core/v1 event as events.k8s.io/v1, and of an events.k8s.io/v1 event as core/v1.

    Both groups have only v1, so the object's own apiVersion determines the direction and `version` is not used.
    """
    return _to_events(obj) if obj.get("apiVersion") == "v1" else _to_core(obj)


def _to_events(obj: Object) -> Object:
    out = {_TO_EVENTS.get(key, key): value for key, value in obj.items()}
    out["apiVersion"] = "events.k8s.io/v1"
    for key in ("regarding", "deprecatedSource"):
        out.setdefault(key, {})
    for key in ("reportingController", "reportingInstance"):
        if not out.get(key):
            out.pop(key, None)
    out.setdefault("eventTime", None)
    for key in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
        out.setdefault(key, None)
    if isinstance(series := out.get("series"), dict):
        out["series"] = {"count": 0, **series}
    return out


def _to_core(obj: Object) -> Object:
    out = {_TO_CORE.get(key, key): value for key, value in obj.items()}
    out["apiVersion"] = "v1"
    for key, kind in _CORE_FIELDS:
        if out.get(key) is None:
            out[key] = kind()
    for key in ("eventTime", "firstTimestamp", "lastTimestamp"):
        out.setdefault(key, None)
    if isinstance(series := out.get("series"), dict) and series.get("count") == 0:
        out["series"] = {key: value for key, value in series.items() if key != "count"}
    return out
